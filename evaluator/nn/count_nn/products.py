"""Products and convolutions: a multiplication and an addition for each pair of elements that meet."""

import math
from collections.abc import Callable

import numpy as np

from evaluator.nn.count_nn.array import Array, elementwise
from evaluator.nn.count_nn.rows import softmax
from evaluator.nn.lengths import each

Lengths = int | tuple[int, ...]


def matmul(x: Array, y: Array) -> Array:
    """2 M N K for each product of [M, K] and [K, N]."""
    left = x.shape if x.ndim > 1 else (1, *x.shape)
    right = y.shape if y.ndim > 1 else (*y.shape, 1)
    if left[-1] != right[-2]:
        raise ValueError(f"matmul: {x.shape} and {y.shape} do not fit")
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    x.tally.operations += 2 * math.prod(batch) * left[-2] * left[-1] * right[-1]
    return x.moved((*batch, *left[-2:-1][: x.ndim > 1], *right[-1:][: y.ndim > 1]))


def bmm(x: Array, y: Array) -> Array:
    return matmul(x, y)


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    product = matmul(x, weight.T)
    return product if bias is None else product + bias


def outer(x: Array, y: Array) -> Array:
    return elementwise(1, x.moved((x.size, 1)), y.moved((1, y.size)))


def einsum(equation: str, *operands: Array) -> Array:
    """Over all indices at once: a multiplication for each operand but one, an addition where an index is folded."""
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "->" not in equation or "." in equation or [len(term) for term in terms] != [x.ndim for x in operands]:
        raise ValueError(f"einsum: {equation!r} on {[x.shape for x in operands]}; write every index and the result's")
    lengths: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for name, length in zip(term, x.shape, strict=True):
            lengths[name] = max(length, lengths.get(name, 1))
    folded = lengths.keys() - set(right)
    operands[0].tally.operations += (len(operands) - 1 + bool(folded)) * math.prod(lengths.values())
    return operands[0].moved([lengths[name] for name in right])


def scaled_dot_product_attention(query: Array, key: Array, value: Array, is_causal: bool = False) -> Array:
    """Every row with every column, those that `is_causal` hides too."""
    transposed = key.moved((*key.shape[:-2], key.shape[-1], key.shape[-2]))
    return matmul(softmax(matmul(query, transposed) * 1.0, dim=-1), value)


def _convolution(ndim: int) -> Callable[..., Array]:
    """The convolution over `ndim` dimensions after the channel."""

    def conv(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Lengths = 1,
        padding: Lengths = 0,
        dilation: Lengths = 1,
        groups: int = 1,
    ) -> Array:
        """Every element of the result meets the weights of its channel, those over the padding too."""
        _require_channels(x, weight.shape[1] * groups, weight, ndim)
        geometry = zip(x.shape[2:], weight.shape[2:], *_per_dimension(ndim, stride, padding, dilation), strict=True)
        lengths = [(n + 2 * p - d * (w - 1) - 1) // s + 1 for n, w, s, p, d in geometry]
        out = x.moved((x.shape[0], weight.shape[0], *lengths))
        x.tally.operations += 2 * out.size * math.prod(weight.shape[1:])
        return _biased(out, bias)

    return conv


def _transposed_convolution(ndim: int) -> Callable[..., Array]:
    """The transposed convolution over `ndim` dimensions after the channel."""

    def conv_transpose(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Lengths = 1,
        padding: Lengths = 0,
        output_padding: Lengths = 0,
        groups: int = 1,
        dilation: Lengths = 1,
    ) -> Array:
        """Every element of x meets the weights of its channel, those whose product is cut off too."""
        _require_channels(x, weight.shape[0], weight, ndim)
        spans = _per_dimension(ndim, stride, padding, output_padding, dilation)
        geometry = zip(x.shape[2:], weight.shape[2:], *spans, strict=True)
        lengths = [(n - 1) * s - 2 * p + d * (w - 1) + extra + 1 for n, w, s, p, extra, d in geometry]
        out = x.moved((x.shape[0], weight.shape[1] * groups, *lengths))
        x.tally.operations += 2 * x.size * math.prod(weight.shape[1:])
        return _biased(out, bias)

    return conv_transpose


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_convolution, (1, 2, 3))


def _per_dimension(ndim: int, *lengths: Lengths) -> list[tuple[int, ...]]:
    return [each(given, ndim) for given in lengths]


def _require_channels(x: Array, channels: int, weight: Array, ndim: int) -> None:
    if x.ndim != ndim + 2 or weight.ndim != ndim + 2 or x.shape[1] != channels:
        raise ValueError(f"convolution over {ndim} dimensions: {x.shape} and weights {weight.shape} do not fit")


def _biased(out: Array, bias: Array | None) -> Array:
    return out if bias is None else elementwise(1, out)
