"""Convolutions over one to three dimensions in JAX, with PyTorch's names, arguments and values.

Their precision is the process's `jax_default_matmul_precision`: as in PyTorch, convolutions may round operands to TF32
on a GPU, and matrix products may not.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from evaluator.nn.lengths import each

Lengths = int | tuple[int, ...]

_DIMENSIONS = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW"), 3: ("NCDHW", "OIDHW", "NCDHW")}


def _convolution(ndim: int) -> Callable[..., jax.Array]:
    """The convolution over `ndim` dimensions after the channel."""

    def conv(
        x: jax.Array,
        weight: jax.Array,
        bias: jax.Array | None = None,
        stride: Lengths = 1,
        padding: Lengths = 0,
        dilation: Lengths = 1,
        groups: int = 1,
    ) -> jax.Array:
        return _convolve(x, weight, bias, stride, padding, dilation, groups, ndim)

    return conv


def _transposed_convolution(ndim: int) -> Callable[..., jax.Array]:
    """The transposed convolution over `ndim` dimensions after the channel."""

    def conv_transpose(
        x: jax.Array,
        weight: jax.Array,
        bias: jax.Array | None = None,
        stride: Lengths = 1,
        padding: Lengths = 0,
        output_padding: Lengths = 0,
        groups: int = 1,
        dilation: Lengths = 1,
    ) -> jax.Array:
        return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation, ndim)

    return conv_transpose


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_convolution, (1, 2, 3))


def _convolve(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Lengths,
    padding: Lengths,
    dilation: Lengths,
    groups: int,
    ndim: int,
) -> jax.Array:
    out = jax.lax.conv_general_dilated(
        x,
        weight,
        window_strides=each(stride, ndim),
        padding=[(p, p) for p in each(padding, ndim)],
        rhs_dilation=each(dilation, ndim),
        dimension_numbers=_DIMENSIONS[ndim],
        feature_group_count=groups,
    )
    return _biased(out, bias)


def _transposed(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Lengths,
    padding: Lengths,
    output_padding: Lengths,
    groups: int,
    dilation: Lengths,
    ndim: int,
) -> jax.Array:
    """The convolution of x, spread out by `stride`, with the kernel turned round."""
    inputs, outputs, *window = weight.shape  # [C, O / groups, ...] becomes [O, C / groups, ...]
    grouped = weight.reshape(groups, inputs // groups, outputs, *window)
    kernel = jnp.flip(jnp.swapaxes(grouped, 1, 2), range(3, 3 + ndim))
    geometry = zip(window, *(each(given, ndim) for given in (padding, output_padding, dilation)), strict=True)
    out = jax.lax.conv_general_dilated(
        x,
        kernel.reshape(groups * outputs, inputs // groups, *window),
        window_strides=(1,) * ndim,
        padding=[(d * (w - 1) - p, d * (w - 1) - p + extra) for w, p, extra, d in geometry],
        lhs_dilation=each(stride, ndim),
        rhs_dilation=each(dilation, ndim),
        dimension_numbers=_DIMENSIONS[ndim],
        feature_group_count=groups,
    )
    return _biased(out, bias)


def _biased(out: jax.Array, bias: jax.Array | None) -> jax.Array:
    return out if bias is None else out + bias.reshape(-1, *(1,) * (out.ndim - 2))
