"""Functions that move elements without changing them, on CuPy arrays, with PyTorch's names and arguments.

Those that are views in PyTorch are views here.
"""

from collections.abc import Sequence

import cupy as cp

from evaluator.nn.cupy_nn import fused
from evaluator.nn.cupy_nn.array import operand
from evaluator.nn.lengths import pad_widths


def reshape(x: cp.ndarray, shape: Sequence[int]) -> cp.ndarray:
    return x.reshape(tuple(shape))


def flatten(x: cp.ndarray, start_dim: int = 0, end_dim: int = -1) -> cp.ndarray:
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])


def transpose(x: cp.ndarray, dim0: int, dim1: int) -> cp.ndarray:
    return cp.swapaxes(x, dim0, dim1)


def permute(x: cp.ndarray, dims: Sequence[int]) -> cp.ndarray:
    return cp.transpose(x, tuple(dims))


def unsqueeze(x: cp.ndarray, dim: int) -> cp.ndarray:
    return cp.expand_dims(x, dim)


def squeeze(x: cp.ndarray, dim: int | None = None) -> cp.ndarray:
    """Without its dimensions of length 1, or without `dim` if that has length 1."""
    if dim is not None and x.shape[dim] != 1:
        return x
    return cp.squeeze(x, dim)


def expand(x: cp.ndarray, size: Sequence[int]) -> cp.ndarray:
    """Repeated along dimensions of length 1 to `size`, where -1 keeps a length."""
    lengths = (1,) * (len(size) - x.ndim) + tuple(x.shape)
    return cp.broadcast_to(x, tuple(old if new == -1 else new for old, new in zip(lengths, size, strict=True)))


def cat(tensors: Sequence[cp.ndarray], dim: int = 0) -> cp.ndarray:
    return operand(cp.concatenate(tuple(tensors), axis=dim))


def stack(tensors: Sequence[cp.ndarray], dim: int = 0) -> cp.ndarray:
    return operand(cp.stack(tuple(tensors), axis=dim))


def chunk(x: cp.ndarray, chunks: int, dim: int = 0) -> tuple[cp.ndarray, ...]:
    """At most `chunks` parts of ceil(length / chunks) elements, the last one perhaps shorter."""
    length = x.shape[dim]
    step = -(-length // chunks)
    return tuple(narrow(x, dim, start, min(step, length - start)) for start in range(0, length, step))


def narrow(x: cp.ndarray, dim: int, start: int, length: int) -> cp.ndarray:
    return x[_along(x, dim, slice(start, start + length))]


def select(x: cp.ndarray, dim: int, index: int) -> cp.ndarray:
    return x[_along(x, dim, index)]


def flip(x: cp.ndarray, dims: int | Sequence[int]) -> cp.ndarray:
    """A copy, as in PyTorch."""
    axes = {axis % x.ndim for axis in ((dims,) if isinstance(dims, int) else dims)}
    return _copied(x[tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(x.ndim))])


def roll(x: cp.ndarray, shifts: int | tuple[int, ...], dims: int | tuple[int, ...]) -> cp.ndarray:
    return operand(cp.roll(x, shifts, dims))


def diag(x: cp.ndarray) -> cp.ndarray:
    return operand(cp.diag(x))


def tril(x: cp.ndarray, diagonal: int = 0) -> cp.ndarray:
    return operand(cp.tril(x, diagonal))


def triu(x: cp.ndarray, diagonal: int = 0) -> cp.ndarray:
    return operand(cp.triu(x, diagonal))


def masked_fill(x: cp.ndarray, mask: cp.ndarray, value: float) -> cp.ndarray:
    return fused.apply("b ? c : a", x, mask, value) if x.dtype == cp.float32 else cp.where(mask, value, x)


def zeros_like(x: cp.ndarray) -> cp.ndarray:
    return operand(cp.zeros(x.shape, x.dtype))


def ones_like(x: cp.ndarray) -> cp.ndarray:
    return operand(cp.ones(x.shape, x.dtype))


def pad(x: cp.ndarray, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> cp.ndarray:
    """`pad` has the elements added before and after the last dimension, then those of the one before it, and so on."""
    if mode != "constant":
        raise ValueError(f'pad: mode is {mode!r}; only "constant" is there')
    widths = pad_widths(pad, x.ndim)
    out = cp.full([before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)], value, x.dtype)
    out[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True))] = x
    return operand(out)


def unfold(x: cp.ndarray, dim: int, size: int, step: int) -> cp.ndarray:
    """Windows of `size` elements along `dim`, `step` apart, each as a new last dimension (`torch.Tensor.unfold`)."""
    axis = dim % x.ndim
    shape, strides = list(x.shape), list(x.strides)
    shape[axis], strides[axis] = (shape[axis] - size) // step + 1, strides[axis] * step
    windows = cp.lib.stride_tricks.as_strided(x, (*shape, size), (*strides, x.strides[axis]))
    return operand(windows)


def _along(x: cp.ndarray, dim: int, index: int | slice) -> tuple[int | slice, ...]:
    return (slice(None),) * (dim % x.ndim) + (index,)


def _copied(x: cp.ndarray) -> cp.ndarray:
    return fused.apply("a", x) if x.dtype == cp.float32 else cp.ascontiguousarray(x)
