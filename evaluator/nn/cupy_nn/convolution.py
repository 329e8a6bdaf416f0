"""Convolutions over one to three dimensions of CuPy arrays, with PyTorch's names, arguments and values."""

from collections.abc import Callable

import cupy as cp

from evaluator.nn.cupy_nn import cudnn_plans, fused
from evaluator.nn.cupy_nn.exact import convolution as exact
from evaluator.nn.cupy_nn.fused import contiguous
from evaluator.nn.lengths import each

Lengths = int | tuple[int, ...]


def _convolution(ndim: int) -> Callable[..., cp.ndarray]:
    """The convolution over `ndim` dimensions after the channel."""

    def conv(
        x: cp.ndarray,
        weight: cp.ndarray,
        bias: cp.ndarray | None = None,
        stride: Lengths = 1,
        padding: Lengths = 0,
        dilation: Lengths = 1,
        groups: int = 1,
    ) -> cp.ndarray:
        return _convolve(x, weight, bias, stride, padding, dilation, groups, ndim)

    return conv


def _transposed_convolution(ndim: int) -> Callable[..., cp.ndarray]:
    """The transposed convolution over `ndim` dimensions after the channel."""

    def conv_transpose(
        x: cp.ndarray,
        weight: cp.ndarray,
        bias: cp.ndarray | None = None,
        stride: Lengths = 1,
        padding: Lengths = 0,
        output_padding: Lengths = 0,
        groups: int = 1,
        dilation: Lengths = 1,
    ) -> cp.ndarray:
        return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation, ndim)

    return conv_transpose


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_convolution, (1, 2, 3))


def _convolve(
    x: cp.ndarray,
    weight: cp.ndarray,
    bias: cp.ndarray | None,
    stride: Lengths,
    padding: Lengths,
    dilation: Lengths,
    groups: int,
    ndim: int,
) -> cp.ndarray:
    _check(x, weight.shape[1] * groups, weight, ndim)
    steps, pads, apart = (each(lengths, ndim) for lengths in (stride, padding, dilation))
    if x.dtype != cp.float32:
        return _biased(exact.forward(x, weight, steps, pads, apart, groups), bias)
    sizes = tuple(
        (n + 2 * p - d * (w - 1) - 1) // s + 1
        for n, w, s, p, d in zip(x.shape[2:], weight.shape[2:], steps, pads, apart, strict=True)
    )
    shape = (x.shape[0], weight.shape[0], *sizes)
    return _biased(_run(x, weight, shape, steps, pads, apart, transposed=False), bias)


def _transposed(
    x: cp.ndarray,
    weight: cp.ndarray,
    bias: cp.ndarray | None,
    stride: Lengths,
    padding: Lengths,
    output_padding: Lengths,
    groups: int,
    dilation: Lengths,
    ndim: int,
) -> cp.ndarray:
    _check(x, weight.shape[0], weight, ndim)
    steps, pads, extra, apart = (each(lengths, ndim) for lengths in (stride, padding, output_padding, dilation))
    if x.dtype != cp.float32:
        return _biased(exact.transposed(x, weight, steps, pads, extra, apart, groups), bias)
    sizes = tuple(
        (n - 1) * s - 2 * p + d * (w - 1) + 1 + e
        for n, w, s, p, d, e in zip(x.shape[2:], weight.shape[2:], steps, pads, apart, extra, strict=True)
    )
    shape = (x.shape[0], weight.shape[1] * groups, *sizes)
    return _biased(_run(x, weight, shape, steps, pads, apart, transposed=True), bias)


def _run(
    x: cp.ndarray,
    weight: cp.ndarray,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
) -> cp.ndarray:
    out = type(x)(shape, cp.float32)
    geometry = cudnn_plans.Geometry(x.shape, weight.shape, shape, stride, padding, dilation, transposed)
    cudnn_plans.convolve(geometry, contiguous(x), contiguous(weight), out)
    return out


def _biased(out: cp.ndarray, bias: cp.ndarray | None) -> cp.ndarray:
    """A kernel of its own, as in PyTorch."""
    if bias is None:
        return out
    per_channel = bias.reshape(-1, *(1,) * (out.ndim - 2))
    return fused.apply("a + b", out, per_channel) if out.dtype == cp.float32 else out + per_channel


def _check(x: cp.ndarray, channels: int, weight: cp.ndarray, ndim: int) -> None:
    if x.ndim != ndim + 2 or weight.ndim != ndim + 2:
        raise ValueError(f"a {ndim}-D convolution takes arrays of {ndim + 2} dimensions, got {x.shape}, {weight.shape}")
    if x.shape[1] != channels:
        raise ValueError(f"the weight {weight.shape} is for {channels} channels, the input {x.shape} has {x.shape[1]}")
