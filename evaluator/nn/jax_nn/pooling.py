"""Max and average pooling over one to three dimensions in JAX, with PyTorch's names, arguments and values."""

import math

import jax
import jax.numpy as jnp

from evaluator.nn.lengths import each, pooled, windows

Lengths = int | tuple[int, ...]


def max_pool1d(
    x: jax.Array,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> jax.Array:
    return _max_pool(x, 1, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: jax.Array,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> jax.Array:
    return _max_pool(x, 2, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    x: jax.Array,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> jax.Array:
    return _max_pool(x, 3, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> jax.Array:
    return _avg_pool(x, 1, kernel_size, stride, padding)


def avg_pool2d(x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> jax.Array:
    return _avg_pool(x, 2, kernel_size, stride, padding)


def avg_pool3d(x: jax.Array, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> jax.Array:
    return _avg_pool(x, 3, kernel_size, stride, padding)


def adaptive_avg_pool1d(x: jax.Array, output_size: Lengths) -> jax.Array:
    return _adaptive_avg_pool(x, 1, output_size)


def adaptive_avg_pool2d(x: jax.Array, output_size: Lengths) -> jax.Array:
    return _adaptive_avg_pool(x, 2, output_size)


def adaptive_avg_pool3d(x: jax.Array, output_size: Lengths) -> jax.Array:
    return _adaptive_avg_pool(x, 3, output_size)


def _adaptive_avg_pool(x: jax.Array, ndim: int, output_size: Lengths) -> jax.Array:
    """A mean of means: all windows along one dimension go with all windows along another."""
    for axis, outputs in zip(range(x.ndim - ndim, x.ndim), each(output_size, ndim), strict=True):
        cuts = windows(x.shape[axis], outputs)
        means = [
            jax.lax.slice_in_dim(x, start, start + n, axis=axis).mean(axis=axis, keepdims=True) for start, n in cuts
        ]
        x = jnp.concatenate(means, axis=axis)
    return x


def _max_pool(
    x: jax.Array,
    ndim: int,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    dilation: Lengths,
    ceil_mode: bool,
) -> jax.Array:
    """The padding is below any number."""
    window, around, apart = (each(lengths, ndim) for lengths in (kernel_size, padding, dilation))
    step = window if stride is None else each(stride, ndim)
    geometry = zip(x.shape[-ndim:], window, step, around, apart, strict=True)
    outs = tuple(pooled(*lengths, ceil_mode) for lengths in geometry)
    return _windows(x, jax.lax.max, -jnp.inf, window, step, around, apart, outs)


def _avg_pool(x: jax.Array, ndim: int, kernel_size: Lengths, stride: Lengths | None, padding: Lengths) -> jax.Array:
    """The padding counts, as zeros."""
    window, around = each(kernel_size, ndim), each(padding, ndim)
    step = window if stride is None else each(stride, ndim)
    geometry = zip(x.shape[-ndim:], window, step, around, strict=True)
    outs = tuple(pooled(n, w, s, p, 1, False) for n, w, s, p in geometry)
    return _windows(x, jax.lax.add, 0, window, step, around, (1,) * ndim, outs) / math.prod(window)


def _windows(x, fold, start, window, step, around, apart, outs) -> jax.Array:
    before = (1,) * (x.ndim - len(window))
    if any(2 * p > w for p, w in zip(around, window, strict=True)):
        raise ValueError(f"pooling: padding {around} exceeds half of the window {window}")
    geometry = zip(outs, x.shape[-len(window) :], window, step, around, apart, strict=True)
    after = [max(p, (m - 1) * s + d * (w - 1) + 1 - n - p) for m, n, w, s, p, d in geometry]
    return jax.lax.reduce_window(
        x,
        jnp.asarray(start, x.dtype)[()],
        fold,
        before + window,
        before + step,
        [(0, 0)] * len(before) + list(zip(around, after, strict=True)),
        window_dilation=before + apart,
    )
