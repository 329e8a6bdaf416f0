"""Latent attention: a token leaves one short vector to later ones, of which all heads' keys and values are maps.

A cache holds, as keys [B, 1, S, rank + rotary], the normed latent beside the turned rotary key, and as values the
latent. Sequences expand these to a key and a value per head; decoding does not: it carries queries into the space of
the latent instead, where all heads share the one key.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from cudal1_jax.policy import rope
from cudal1_jax.policy.attention import KeyValues
from cudal1_jax.policy.config import DecoderConfig, Latent, YarnScaling
from cudal1_jax.policy.norm import rms_norm
from cudal1_jax.policy.parameters import Params

Project = Callable[[jax.Array, str], jax.Array]  # activations [..., in] by the parameter of that name


def shape_of(config: DecoderConfig) -> Latent:
    if config.latent is None:
        raise ValueError("this decoder has no latent attention")
    return config.latent


def queries(
    config: DecoderConfig, weights: Params, project: Project, y: jax.Array, cos: jax.Array, sin: jax.Array
) -> jax.Array:
    """Queries [B, T, H, d] of activations [B, T, D], the rotary part last."""
    latent = shape_of(config)
    if latent.query_rank is None:
        q = project(y, "q")
    else:
        q = project(rms_norm(project(y, "q_down"), weights["q_latent_norm"], config.norm_epsilon), "q_up")
    q = q.reshape(*y.shape[:2], config.heads, config.head_size)
    plain, turned = jnp.split(q, [latent.plain_size], axis=-1)
    q = jnp.concatenate([plain, rope.rotate(rope.half_split(turned), cos, sin)], axis=-1)
    return q * score_factor(config)


def cached(
    config: DecoderConfig, weights: Params, project: Project, y: jax.Array, cos: jax.Array, sin: jax.Array
) -> KeyValues:
    """What a cache keeps of activations [B, T, D]."""
    latent = shape_of(config)
    short, turned = jnp.split(project(y, "kv_down"), [latent.rank], axis=-1)
    short = rms_norm(short, weights["kv_latent_norm"], config.norm_epsilon)[:, None]  # [B, 1, T, rank]
    turned = rope.rotate(rope.half_split(turned)[:, :, None], cos, sin).swapaxes(1, 2)
    return KeyValues(jnp.concatenate([short, turned], axis=-1), short)


def expand(config: DecoderConfig, project: Project, own: KeyValues) -> KeyValues:
    """Keys [B, H, S, d] and values [B, H, S, value_size] of what a cache keeps."""
    latent = shape_of(config)
    short, turned = jnp.split(own.k[:, 0], [latent.rank], axis=-1)  # [B, S, ...]
    heads = project(short, "kv_up").reshape(*short.shape[:2], config.heads, -1).swapaxes(1, 2)
    plain, values = jnp.split(heads, [latent.plain_size], axis=-1)
    turned = jnp.broadcast_to(turned[:, None], (*plain.shape[:-1], latent.rotary_size))
    return KeyValues(jnp.concatenate([plain, turned], axis=-1), values)


def score_factor(config: DecoderConfig) -> float:
    """What YaRN multiplies scores by, beside the usual d ** -0.5."""
    return config.rope_scaling.score_factor if isinstance(config.rope_scaling, YarnScaling) else 1.0
