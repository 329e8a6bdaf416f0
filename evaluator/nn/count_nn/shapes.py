"""Functions that move elements: no operation, but for the choice of `masked_fill`."""

from collections.abc import Sequence

from evaluator.nn.count_nn.array import Array, axis_of, elementwise
from evaluator.nn.lengths import pad_widths


def reshape(x: Array, shape: Sequence[int]) -> Array:
    return x.reshape(tuple(shape))


def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    first, last = axis_of(x, start_dim), axis_of(x, end_dim)
    return x.reshape((*x.shape[:first], -1, *x.shape[last + 1 :]))


def transpose(x: Array, dim0: int, dim1: int) -> Array:
    lengths, first, second = list(x.shape), axis_of(x, dim0), axis_of(x, dim1)
    lengths[first], lengths[second] = lengths[second], lengths[first]
    return x.moved(lengths)


def permute(x: Array, dims: Sequence[int]) -> Array:
    return x.moved([x.shape[dim] for dim in dims])


def unsqueeze(x: Array, dim: int) -> Array:
    axis = axis_of(x, dim, more=1)
    return x.moved((*x.shape[:axis], 1, *x.shape[axis:]))


def squeeze(x: Array, dim: int | None = None) -> Array:
    axes = range(x.ndim) if dim is None else (axis_of(x, dim),)
    return x.moved([length for axis, length in enumerate(x.shape) if length != 1 or axis not in axes])


def expand(x: Array, size: Sequence[int]) -> Array:
    lengths = (1,) * (len(size) - x.ndim) + x.shape
    return x.moved([old if new == -1 else new for old, new in zip(lengths, size, strict=True)])


def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    first = tensors[0]
    axis = axis_of(first, dim)
    return first.moved((*first.shape[:axis], sum(x.shape[axis] for x in tensors), *first.shape[axis + 1 :]))


def stack(tensors: Sequence[Array], dim: int = 0) -> Array:
    axis = axis_of(tensors[0], dim, more=1)
    shape = tensors[0].shape
    return tensors[0].moved((*shape[:axis], len(tensors), *shape[axis:]))


def chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    axis = axis_of(x, dim)
    length = x.shape[axis]
    step = -(-length // chunks)
    parts = [min(step, length - begin) for begin in range(0, length, step)]
    return tuple(x.moved((*x.shape[:axis], part, *x.shape[axis + 1 :])) for part in parts)


def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    axis = axis_of(x, dim)
    return x.moved((*x.shape[:axis], length, *x.shape[axis + 1 :]))


def select(x: Array, dim: int, index: int) -> Array:
    axis = axis_of(x, dim)
    return x.moved((*x.shape[:axis], *x.shape[axis + 1 :]))


def flip(x: Array, dims: int | Sequence[int]) -> Array:
    return x


def roll(x: Array, shifts: int | tuple[int, ...], dims: int | tuple[int, ...]) -> Array:
    return x


def diag(x: Array) -> Array:
    """A matrix from a vector, or a matrix's diagonal."""
    return x.moved((x.size, x.size) if x.ndim == 1 else (min(x.shape),))


def tril(x: Array, diagonal: int = 0) -> Array:
    return x


def triu(x: Array, diagonal: int = 0) -> Array:
    return x


def masked_fill(x: Array, mask: Array, value: float) -> Array:
    return elementwise(1, x, mask).to(x.dtype)


def zeros_like(x: Array) -> Array:
    return x


def ones_like(x: Array) -> Array:
    return x


def pad(x: Array, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Array:
    widths = pad_widths(pad, x.ndim)
    return x.moved([before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)])


def unfold(x: Array, dim: int, size: int, step: int) -> Array:
    axis = axis_of(x, dim)
    return x.moved((*x.shape[:axis], (x.shape[axis] - size) // step + 1, *x.shape[axis + 1 :], size))
