"""Reductions by CuPy's own, for the oracle."""

import cupy as cp

Dim = int | tuple[int, ...] | None


def sum(x: cp.ndarray, dim: Dim, keepdim: bool) -> cp.ndarray:
    return cp.sum(x, axis=dim, keepdims=keepdim)


def mean(x: cp.ndarray, dim: Dim, keepdim: bool) -> cp.ndarray:
    return cp.mean(x, axis=dim, keepdims=keepdim)


def prod(x: cp.ndarray, dim: Dim, keepdim: bool) -> cp.ndarray:
    return cp.prod(x, axis=dim, keepdims=keepdim)


def amax(x: cp.ndarray, dim: Dim, keepdim: bool) -> cp.ndarray:
    return cp.max(x, axis=dim, keepdims=keepdim)


def amin(x: cp.ndarray, dim: Dim, keepdim: bool) -> cp.ndarray:
    return cp.min(x, axis=dim, keepdims=keepdim)


def argmax(x: cp.ndarray, dim: int | None, keepdim: bool) -> cp.ndarray:
    found = cp.argmax(x, axis=dim)
    return found.reshape(_kept(x, dim)) if keepdim else found


def argmin(x: cp.ndarray, dim: int | None, keepdim: bool) -> cp.ndarray:
    found = cp.argmin(x, axis=dim)
    return found.reshape(_kept(x, dim)) if keepdim else found


def var(x: cp.ndarray, dim: Dim, correction: int, keepdim: bool) -> cp.ndarray:
    """Two passes: the mean, then the mean square of what is left."""
    centred = x - cp.mean(x, axis=dim, keepdims=True)
    mean_square = cp.mean(centred * centred, axis=dim, keepdims=keepdim)
    count = x.size // (mean_square.size or 1)
    return mean_square * (count / (count - correction))


def norm(x: cp.ndarray, p: float, dim: Dim, keepdim: bool) -> cp.ndarray:
    if p == float("inf"):
        return cp.max(cp.absolute(x), axis=dim, keepdims=keepdim)
    return cp.sum(cp.absolute(x) ** p, axis=dim, keepdims=keepdim) ** (1 / p)


def logsumexp(x: cp.ndarray, dim: Dim, keepdim: bool) -> cp.ndarray:
    top = cp.max(x, axis=dim, keepdims=True)
    logarithm = cp.log(cp.sum(cp.exp(x - top), axis=dim, keepdims=True)) + top
    return logarithm if keepdim else cp.squeeze(logarithm, axis=dim)


def _kept(x: cp.ndarray, dim: int | None) -> tuple[int, ...]:
    return tuple(1 if dim is None or axis == dim % x.ndim else size for axis, size in enumerate(x.shape))
