"""Reductions, scans and pooling: an operation for each element that is folded."""

import builtins
import math
from collections.abc import Callable

from evaluator.nn.count_nn.array import Array, Dim, elementwise, fold
from evaluator.nn.lengths import each, pooled, windows

Lengths = int | tuple[int, ...]


def sum(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    return fold(x, dim, keepdim)


prod = amax = amin = max = min = sum


def argmax(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return fold(x, dim, keepdim).to("int64")


argmin = argmax


def mean(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    return fold(x, dim, keepdim, per_result=1)


def var(x: Array, dim: Dim = None, correction: int = 1, keepdim: bool = False) -> Array:
    """Sum, difference, square, sum; two quotients."""
    return fold(x, dim, keepdim, per_element=4, per_result=2)


def std(x: Array, dim: Dim = None, correction: int = 1, keepdim: bool = False) -> Array:
    return fold(x, dim, keepdim, per_element=4, per_result=3)


def norm(x: Array, p: float = 2.0, dim: Dim = None, keepdim: bool = False) -> Array:
    """Magnitude or square and sum, with a root unless p is 1 or infinite; a power each for a p above 2."""
    if p in (1, float("inf")):
        return fold(x, dim, keepdim, per_element=2)
    return fold(x, dim, keepdim, per_element=2 if p == 2 else 3, per_result=1)


def logsumexp(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """Maximum, difference, exp, sum; a logarithm and a sum."""
    return fold(x, dim, keepdim, per_element=4, per_result=2)


def cumsum(x: Array, dim: int) -> Array:
    return elementwise(1, x)


cumprod = cumsum


def _pool(ndim: int, per_result: int) -> Callable[..., Array]:
    """The pooling over the last `ndim` dimensions: each result folds its window, the padding too."""

    def pool(
        x: Array,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        dilation: Lengths = 1,
        ceil_mode: bool = False,
    ) -> Array:
        window, around, apart = (each(lengths, ndim) for lengths in (kernel_size, padding, dilation))
        step = window if stride is None else each(stride, ndim)
        geometry = zip(x.shape[-ndim:], window, step, around, apart, strict=True)
        lengths = [pooled(*along, ceil_mode) for along in geometry]
        out = x.moved((*x.shape[:-ndim], *lengths))
        return elementwise(math.prod(window) + per_result, out)

    return pool


max_pool1d, max_pool2d, max_pool3d = (_pool(ndim, per_result=0) for ndim in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool(ndim, per_result=1) for ndim in (1, 2, 3))


def _adaptive(ndim: int) -> Callable[..., Array]:
    """The adaptive average: windows of their own lengths, a quotient each."""

    def pool(x: Array, output_size: Lengths) -> Array:
        cuts = [windows(n, m) for n, m in zip(x.shape[-ndim:], each(output_size, ndim), strict=True)]
        before, outs = x.shape[:-ndim], [len(along) for along in cuts]
        folded = math.prod(before) * math.prod(builtins.sum(n for _, n in along) for along in cuts)
        x.tally.operations += folded + math.prod(before) * math.prod(outs)
        return x.moved((*before, *outs))

    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive, (1, 2, 3))
