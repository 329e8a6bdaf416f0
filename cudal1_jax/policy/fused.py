"""Causal attention over packed rows by cuDNN's fused kernels, on an NVIDIA GPU: the backend that trains stage 1 fast.

cuDNN knows causal masks but no segments, so these come as a bias; it reads the bias where XLA would write all scores.
32 rows of 2,048 tokens, forward and backward on an H200: 4.5 ms a layer, against 7.4 ms for `attention.causal`, 7.2
ms for a bias that holds the causal mask as well, and 20 ms for XLA's own attention.
"""

from typing import Literal

import jax
import jax.numpy as jnp

from cudal1_jax.policy.attention import KeyValues

MASKED = -1e9  # finite in bfloat16, and cuDNN asks for a bias that is


def segment_bias(segment_ids: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """0 where two positions are of one segment, else a large negative number; [B, T] -> [B, 1, T, T]."""
    same = segment_ids[:, None, :, None] == segment_ids[:, None, None, :]
    return jnp.where(same, jnp.zeros((), dtype), jnp.full((), MASKED, dtype))


def attend(q: jax.Array, own: KeyValues, bias: jax.Array | None) -> jax.Array:
    """What `attention.causal` gives without a prefix: q [B, T, H, d], own [B, K, T, d] -> [B, T, H, d].

    On a GPU q is bfloat16 or float16 and d a multiple of 8; elsewhere XLA computes the same, slowly.
    """
    implementation: Literal["cudnn", "xla"] = "cudnn" if jax.default_backend() == "gpu" else "xla"
    k, v = own.k.swapaxes(1, 2), own.v.swapaxes(1, 2)
    return jax.nn.dot_product_attention(q, k, v, bias, is_causal=True, implementation=implementation)
