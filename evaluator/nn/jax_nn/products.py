"""Matrix products in JAX, in full float32, with PyTorch's names, arguments and values."""

import jax
import jax.numpy as jnp

# Accelerators would otherwise round float32 operands to bfloat16 or TF32, which PyTorch's products do not by default.
_PRECISION = jax.lax.Precision.HIGHEST


def matmul(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.matmul(x, y, precision=_PRECISION)


def bmm(x: jax.Array, y: jax.Array) -> jax.Array:
    """Product of [B, N, K] and [B, K, M]."""
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ValueError(f"bmm: needs shapes [B, N, K] and [B, K, M], got {x.shape} and {y.shape}")
    return jnp.matmul(x, y, precision=_PRECISION)


def linear(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """x [..., K] times the transpose of weight [M, K], plus bias [M]."""
    product = jnp.matmul(x, weight.T, precision=_PRECISION)
    return product if bias is None else product + bias


def einsum(equation: str, *operands: jax.Array) -> jax.Array:
    return jnp.einsum(equation, *operands, precision=_PRECISION)


def outer(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.outer(x, y)


def scaled_dot_product_attention(
    query: jax.Array, key: jax.Array, value: jax.Array, is_causal: bool = False
) -> jax.Array:
    """softmax(Q K^T / sqrt(d)) V over [..., T, d]; with `is_causal` a row sees the columns up to its own."""
    scores = jnp.einsum("...td,...sd->...ts", query, key, precision=_PRECISION) * query.shape[-1] ** -0.5
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.matmul(jax.nn.softmax(scores, axis=-1), value, precision=_PRECISION)
