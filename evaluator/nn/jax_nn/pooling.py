"""Max and average pooling over one to three dimensions in JAX, with PyTorch's names, arguments and values."""

import math

import jax
import jax.numpy as jnp

from evaluator.nn.lengths import each

Lengths = int | tuple[int, ...]


def max_pool1d(
    x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0, dilation: Lengths = 1
) -> jax.Array:
    return _max_pool(x, 1, kernel_size, stride, padding, dilation)


def max_pool2d(
    x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0, dilation: Lengths = 1
) -> jax.Array:
    return _max_pool(x, 2, kernel_size, stride, padding, dilation)


def max_pool3d(
    x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0, dilation: Lengths = 1
) -> jax.Array:
    return _max_pool(x, 3, kernel_size, stride, padding, dilation)


def avg_pool1d(x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> jax.Array:
    return _avg_pool(x, 1, kernel_size, stride, padding)


def avg_pool2d(x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> jax.Array:
    return _avg_pool(x, 2, kernel_size, stride, padding)


def avg_pool3d(x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> jax.Array:
    return _avg_pool(x, 3, kernel_size, stride, padding)


def _max_pool(
    x: jax.Array, ndim: int, kernel_size: Lengths, stride: Lengths | None, padding: Lengths, dilation: Lengths
) -> jax.Array:
    """The padding is below any number."""
    window, around, apart = (each(lengths, ndim) for lengths in (kernel_size, padding, dilation))
    step = window if stride is None else each(stride, ndim)
    return _windows(x, jax.lax.max, -jnp.inf, window, step, around, apart)


def _avg_pool(x: jax.Array, ndim: int, kernel_size: Lengths, stride: Lengths | None, padding: Lengths) -> jax.Array:
    """The padding counts, as zeros."""
    window, around = each(kernel_size, ndim), each(padding, ndim)
    step = window if stride is None else each(stride, ndim)
    return _windows(x, jax.lax.add, 0, window, step, around, (1,) * ndim) / math.prod(window)


def _windows(x, fold, start, window, step, around, apart) -> jax.Array:
    before = (1,) * (x.ndim - len(window))
    if any(2 * p > w for p, w in zip(around, window, strict=True)):
        raise ValueError(f"pooling: padding {around} exceeds half of the window {window}")
    return jax.lax.reduce_window(
        x,
        jnp.asarray(start, x.dtype)[()],
        fold,
        before + window,
        before + step,
        [(0, 0)] * len(before) + [(p, p) for p in around],
        window_dilation=before + apart,
    )
