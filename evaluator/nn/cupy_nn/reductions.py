"""Reductions on CuPy arrays, with PyTorch's names, arguments and values.

`dim` is one dimension, a tuple of them, or None for all. `max` and `min` give the values alone, as `amax` and `amin`.
"""

import cupy as cp

from evaluator.nn.cupy_nn import folds
from evaluator.nn.cupy_nn.exact import reductions as exact
from evaluator.nn.cupy_nn.fold import Fold, fold

Dim = int | tuple[int, ...] | None


def sum(x: cp.ndarray, dim: Dim = None, keepdim: bool = False) -> cp.ndarray:
    return _fold(folds.SUM, x, dim, keepdim) if x.dtype == cp.float32 else exact.sum(x, dim, keepdim)


def mean(x: cp.ndarray, dim: Dim = None, keepdim: bool = False) -> cp.ndarray:
    return _fold(folds.MEAN, x, dim, keepdim) if x.dtype == cp.float32 else exact.mean(x, dim, keepdim)


def prod(x: cp.ndarray, dim: int | None = None, keepdim: bool = False) -> cp.ndarray:
    return _fold(folds.PROD, x, dim, keepdim) if x.dtype == cp.float32 else exact.prod(x, dim, keepdim)


def amax(x: cp.ndarray, dim: Dim = None, keepdim: bool = False) -> cp.ndarray:
    return _fold(folds.MAX, x, dim, keepdim) if x.dtype == cp.float32 else exact.amax(x, dim, keepdim)


def amin(x: cp.ndarray, dim: Dim = None, keepdim: bool = False) -> cp.ndarray:
    return _fold(folds.MIN, x, dim, keepdim) if x.dtype == cp.float32 else exact.amin(x, dim, keepdim)


max = amax
min = amin


def argmax(x: cp.ndarray, dim: int | None = None, keepdim: bool = False) -> cp.ndarray:
    """Index of the first largest element, int64."""
    return _fold(folds.ARGMAX, x, dim, keepdim) if x.dtype == cp.float32 else exact.argmax(x, dim, keepdim)


def argmin(x: cp.ndarray, dim: int | None = None, keepdim: bool = False) -> cp.ndarray:
    """Index of the first smallest element, int64."""
    return _fold(folds.ARGMIN, x, dim, keepdim) if x.dtype == cp.float32 else exact.argmin(x, dim, keepdim)


def var(x: cp.ndarray, dim: Dim = None, correction: int = 1, keepdim: bool = False) -> cp.ndarray:
    """Variance with `correction` subtracted from the count: 1, PyTorch's default, is the unbiased estimate."""
    if x.dtype == cp.float32:
        return _fold(folds.VAR, x, dim, keepdim, correction)
    return exact.var(x, dim, correction, keepdim)


def std(x: cp.ndarray, dim: Dim = None, correction: int = 1, keepdim: bool = False) -> cp.ndarray:
    if x.dtype == cp.float32:
        return _fold(folds.STD, x, dim, keepdim, correction)
    return cp.sqrt(exact.var(x, dim, correction, keepdim))


def norm(x: cp.ndarray, p: float = 2.0, dim: Dim = None, keepdim: bool = False) -> cp.ndarray:
    """p-norm over `dim`; over all elements, the Frobenius norm at p = 2."""
    if x.dtype != cp.float32:
        return exact.norm(x, p, dim, keepdim)
    known = {1.0: folds.NORM_1, 2.0: folds.NORM_2, float("inf"): folds.NORM_INFINITY}
    return _fold(known.get(float(p), folds.NORM_P), x, dim, keepdim, p)


def logsumexp(x: cp.ndarray, dim: Dim = None, keepdim: bool = False) -> cp.ndarray:
    return _fold(folds.LOGSUMEXP, x, dim, keepdim) if x.dtype == cp.float32 else exact.logsumexp(x, dim, keepdim)


def dims_of(x: cp.ndarray, dim: Dim) -> tuple[int, ...]:
    """`dim` as sorted dimensions that are not negative; `IndexError` where there is no such dimension."""
    given = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    for axis in given:
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"dimension {axis} does not exist in an array of {x.ndim} dimensions")
    dims = sorted({axis % x.ndim for axis in given})
    if len(dims) != len(given):
        raise ValueError(f"dimensions {given} name one of {x.ndim} dimensions twice")
    return tuple(dims)


def kept(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with 1 at every dimension of `dims`."""
    return tuple(1 if axis in dims else size for axis, size in enumerate(shape))


def _fold(kind: Fold, x: cp.ndarray, dim: Dim, keepdim: bool, parameter: float = 0.0) -> cp.ndarray:
    dims = dims_of(x, dim)
    out = fold(kind, x, dims, parameter)
    return out.reshape(kept(x.shape, dims)) if keepdim else out
