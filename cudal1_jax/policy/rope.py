"""Rotary positions: frequencies, stretched to longer contexts where the model asks for it, and the turn itself."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from cudal1_jax.policy.config import DecoderConfig, Llama3Scaling, YarnScaling


def frequencies(config: DecoderConfig) -> np.ndarray:
    """Radians per position [rotary_size / 2], float32."""
    size = config.rotary_size
    plain = config.rope_theta ** (-np.arange(0, size, 2, dtype=np.float64) / size)
    match config.rope_scaling:
        case Llama3Scaling() as scaling:
            plain = _llama3(scaling, plain)
        case YarnScaling() as scaling:
            plain = _yarn(scaling, plain, config.rope_theta)
    return plain.astype(np.float32)


def rotation(config: DecoderConfig, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cosines and sines [..., rotary_size / 2] of the rotary angles, in float32."""
    angles = jnp.einsum("...,f->...f", positions.astype(jnp.float32), frequencies(config))
    if isinstance(config.rope_scaling, YarnScaling):
        factor = config.rope_scaling.cosine_factor
        return jnp.cos(angles) * factor, jnp.sin(angles) * factor
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Rotary embedding of x [B, T, heads, d], half-split convention (element i pairs with i + d / 2)."""
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    cos, sin = cos[..., None, :], sin[..., None, :]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)


def half_split(x: jax.Array) -> jax.Array:
    """Numbers [..., d] of interleaved pairs (element 2 i with 2 i + 1) in the order of `rotate`."""
    return x.reshape(*x.shape[:-1], -1, 2).swapaxes(-1, -2).reshape(x.shape)


def _llama3(scaling: Llama3Scaling, plain: np.ndarray) -> np.ndarray:
    turns = scaling.original_context * plain / (2 * math.pi)
    kept = np.clip((turns - scaling.low) / (scaling.high - scaling.low), 0, 1)
    return plain * (kept + (1 - kept) / scaling.factor)


def _yarn(scaling: YarnScaling, plain: np.ndarray, theta: float) -> np.ndarray:
    count = len(plain)

    def place(turns: float) -> float:
        """Index of the frequency that makes so many turns over the original context."""
        return count * math.log(scaling.original_context / (turns * 2 * math.pi)) / math.log(theta)

    first = max(math.floor(place(scaling.fast)), 0)
    last = min(math.ceil(place(scaling.slow)), 2 * count - 1)
    stretched = np.clip((np.arange(count) - first) / max(last - first, 1e-3), 0, 1)
    return plain * (1 - stretched + stretched / scaling.factor)
