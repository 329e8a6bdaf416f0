"""Decoding with the layers' matrices in eight bits: a byte of memory traffic per weight, and integer products.

A weight matrix has one scale for each output, activations one for each row of the batch at each step; both are
symmetric. What is drawn then comes from a slightly different policy, whose log-probs are the ones recorded: the
learner's importance weights account for the difference.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from cudal1_jax.policy import decode
from cudal1_jax.policy.parameters import Params

MATRICES = ("qkv", "o", "gate_up", "down")  # of a layer; experts and the vocabulary's table stay as they are
LARGEST = 127.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Matrix:
    """Stands where `decode` has a matrix [out, in], whose only use is `matrix @ activations`."""

    values: jax.Array  # [out, in] int8
    scale: jax.Array  # [out, 1] float32, what one step of a value is worth

    def __matmul__(self, x: jax.Array) -> jax.Array:
        """Activations [in, B] -> [out, B] in their dtype."""
        values, scale = _rounded(x, axis=0)
        total = jax.lax.dot(self.values, values, preferred_element_type=jnp.int32).astype(jnp.float32)
        return (total * jnp.broadcast_to(self.scale, total.shape) * jnp.broadcast_to(scale, total.shape)).astype(
            x.dtype
        )


def quantised(weights: decode.Weights) -> decode.Weights:
    """The same weights with every layer's `MATRICES` in eight bits."""
    return weights._replace(layers=tuple(_layer(layer) for layer in weights.layers))


@jax.jit
def _layer(layer: Params) -> dict[str, Any]:
    return {name: Matrix(*_rounded(x, axis=1)) if name in MATRICES and x.ndim == 2 else x for name, x in layer.items()}


def _rounded(x: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """int8 values of x and the scale along `axis` that makes them x again; zeros have scale 1."""
    wide = x.astype(jnp.float32)
    largest = jnp.max(jnp.abs(wide), axis=axis, keepdims=True)
    scale = jnp.where(largest > 0, largest / LARGEST, 1.0)
    return jnp.round(wide / jnp.broadcast_to(scale, wide.shape)).astype(jnp.int8), scale
