"""Reductions and scans in JAX, with PyTorch's names, arguments and values.

`dim` is one dimension, a tuple of them, or None for all. `max` and `min` give the values alone, where PyTorch's give
values and indices; `amax` and `amin` are the same functions under the names that mean just this in PyTorch.
"""

import jax
import jax.numpy as jnp

Dim = int | tuple[int, ...] | None


def sum(x: jax.Array, dim: Dim = None, keepdim: bool = False) -> jax.Array:
    return jnp.sum(x, axis=dim, keepdims=keepdim)


def mean(x: jax.Array, dim: Dim = None, keepdim: bool = False) -> jax.Array:
    return jnp.mean(x, axis=dim, keepdims=keepdim)


def prod(x: jax.Array, dim: int | None = None, keepdim: bool = False) -> jax.Array:
    return jnp.prod(x, axis=dim, keepdims=keepdim)


def amax(x: jax.Array, dim: Dim = None, keepdim: bool = False) -> jax.Array:
    return jnp.max(x, axis=dim, keepdims=keepdim)


def amin(x: jax.Array, dim: Dim = None, keepdim: bool = False) -> jax.Array:
    return jnp.min(x, axis=dim, keepdims=keepdim)


max = amax
min = amin


def argmax(x: jax.Array, dim: int | None = None, keepdim: bool = False) -> jax.Array:
    """Index of the first largest element, int64 (int32 in a process without 64-bit mode)."""
    return jnp.argmax(x, axis=dim, keepdims=keepdim)


def argmin(x: jax.Array, dim: int | None = None, keepdim: bool = False) -> jax.Array:
    """Index of the first smallest element, int64 (int32 in a process without 64-bit mode)."""
    return jnp.argmin(x, axis=dim, keepdims=keepdim)


def var(x: jax.Array, dim: Dim = None, correction: int = 1, keepdim: bool = False) -> jax.Array:
    """Variance with `correction` subtracted from the count: 1, PyTorch's default, is the unbiased estimate."""
    return jnp.var(x, axis=dim, ddof=correction, keepdims=keepdim)


def std(x: jax.Array, dim: Dim = None, correction: int = 1, keepdim: bool = False) -> jax.Array:
    return jnp.std(x, axis=dim, ddof=correction, keepdims=keepdim)


def norm(x: jax.Array, p: float = 2.0, dim: Dim = None, keepdim: bool = False) -> jax.Array:
    """p-norm over `dim`; over all elements, the Frobenius norm at p = 2."""
    if p == 1:
        return jnp.sum(jnp.abs(x), axis=dim, keepdims=keepdim)
    if p == 2:
        return jnp.sqrt(jnp.sum(x * x, axis=dim, keepdims=keepdim))
    if p == float("inf"):
        return jnp.max(jnp.abs(x), axis=dim, keepdims=keepdim)
    return jnp.sum(jnp.abs(x) ** p, axis=dim, keepdims=keepdim) ** (1 / p)


def logsumexp(x: jax.Array, dim: Dim = None, keepdim: bool = False) -> jax.Array:
    return jax.nn.logsumexp(x, axis=dim, keepdims=keepdim)


def cumsum(x: jax.Array, dim: int) -> jax.Array:
    return jnp.cumsum(x, axis=dim)


def cumprod(x: jax.Array, dim: int) -> jax.Array:
    return jnp.cumprod(x, axis=dim)
