"""Library steps for programs: `from evaluator import lib`.

Traced, each call becomes a step of the plan: cuBLAS and cuDNN on a GPU, the emulator's own loops on a CPU. Under real
CuPy the same file runs through these functions, which need CuPy and, for convolutions, cuDNN. Arrays are contiguous;
every function gives a new array, or fills `out`.
"""

from typing import Any

from evaluator.nn import lengths
from evaluator.program import library

Array = Any  # cupy.ndarray


def gemm(a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False, out: Array | None = None) -> Array:
    """Product of a [*, m, k] and b [*, k, n] of one float dtype.

    `transpose_a`: a is [*, k, m] in memory; `transpose_b`: b is [*, n, k]. Both have the same batch dimensions, or one
    has none. Float32 is multiplied in full precision, without TF32.
    """
    from evaluator.nn.cupy_nn import cublas

    left, right = a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b
    return cublas.matmul(left, right, out=out)


def conv(
    x: Array,
    weight: Array,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    transposed: bool = False,
    output_padding: int | tuple[int, ...] = 0,
    out: Array | None = None,
) -> Array:
    """Convolution of x [batch, channels, lengths ...] over one to three dimensions in float32, TF32 allowed, no bias.

    weight is [outputs, channels / groups, windows ...]; where `transposed`, [channels, outputs / groups, windows ...],
    and the result is that of PyTorch's conv_transpose. ValueError where shapes do not fit.
    """
    ndim = x.ndim - 2
    stride, padding, dilation = (lengths.each(given, ndim) for given in (stride, padding, dilation))
    shape = library.conv_shape(
        x.shape,
        weight.shape,
        stride=stride,
        padding=padding,
        dilation=dilation,
        output_padding=lengths.each(output_padding, ndim),
        groups=groups,
        transposed=transposed,
    )
    _check_for_cudnn(shape, out, x, weight)
    import cupy

    from evaluator.nn.cupy_nn import cudnn_plans

    found = cupy.empty(shape, cupy.float32) if out is None else out
    geometry = cudnn_plans.Geometry(x.shape, weight.shape, shape, stride, padding, dilation, transposed)
    cudnn_plans.convolve(geometry, x, weight, found)
    return found


def attention(query: Array, key: Array, value: Array, causal: bool = False, out: Array | None = None) -> Array:
    """softmax(query key^T / sqrt(d)) value over [*, tokens, d], [*, sources, d] and [*, sources, v] in float32.

    `causal`: a token sees the sources up to its own place.
    """
    import cupy

    from evaluator.nn.cupy_nn import operand, scaled_dot_product_attention

    found = scaled_dot_product_attention(operand(query), operand(key), operand(value), causal).view(cupy.ndarray)
    if out is None:
        return found
    out[...] = found
    return out


def _check_for_cudnn(shape: tuple[int, ...], out: Array | None, *operands: Array) -> None:
    """ValueError where cuDNN, which is given addresses alone, would read or write beside an array."""
    for array in operands if out is None else (*operands, out):
        if array.dtype != "float32" or not array.flags.c_contiguous:
            raise ValueError(f"conv: an array of {array.dtype}, shape {array.shape}; expected contiguous float32")
    if out is not None and out.shape != shape:
        raise ValueError(f"conv: out has shape {out.shape}, expected {shape}")
