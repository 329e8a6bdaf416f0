"""What a reference sees where its operations are counted: shape and dtype, and the tally that they are added to."""

import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

Index = int | slice | EllipsisType | None
Dim = int | tuple[int, ...] | None


class Tally:
    """Operations so far of one run of a reference."""

    def __init__(self) -> None:
        self.operations = 0


class Array:
    """An array without contents. What is made of it has its tally."""

    def __init__(self, shape: Sequence[int], dtype: str, tally: Tally):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.tally = tally

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def T(self) -> "Array":
        return self.moved(self.shape[::-1])

    def moved(self, shape: Sequence[int]) -> "Array":
        """Its elements, or some of them, in another shape: no operation."""
        return Array(shape, self.dtype, self.tally)

    def to(self, dtype: str) -> "Array":
        """As many elements of another type, the results of a comparison or a search for instance."""
        return Array(self.shape, dtype, self.tally)

    def reshape(self, *shape: Any) -> "Array":
        lengths = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        known = math.prod(length for length in lengths if length != -1)
        found = tuple(self.size // known if length == -1 and known else length for length in lengths)
        if math.prod(found) != self.size:
            raise ValueError(f"reshape: {self.shape} has {self.size} elements, {tuple(lengths)} has not")
        return self.moved(found)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> "Array":
        return self.moved(_indexed(self.shape, index if isinstance(index, tuple) else (index,)))

    def __add__(self, other: Any) -> "Array":
        return elementwise(1, self, other)

    def __lt__(self, other: Any) -> "Array":
        return elementwise(1, self, other).to("bool")

    def __neg__(self) -> "Array":
        return elementwise(1, self)

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __add__
    __le__ = __gt__ = __ge__ = __lt__

    def __matmul__(self, other: "Array") -> "Array":
        from evaluator.nn.count_nn.products import matmul  # which is written with arrays

        return matmul(self, other)


def elementwise(per_element: int, *operands: Any) -> Array:
    """So many operations for each element of what the operands broadcast to; those that are no arrays are numbers."""
    arrays = [each for each in operands if isinstance(each, Array)]
    shape = np.broadcast_shapes(*(each.shape for each in arrays))
    result = Array(shape, _common([each.dtype for each in arrays]), arrays[0].tally)
    result.tally.operations += per_element * result.size
    return result


def fold(x: Array, dim: Dim, keepdim: bool, per_element: int = 1, per_result: int = 0) -> Array:
    """So many operations for each element that is folded, and for each result."""
    axes = axes_of(x, dim)
    kept = [1 if axis in axes else length for axis, length in enumerate(x.shape)]
    result = x.moved(kept if keepdim else [length for axis, length in enumerate(x.shape) if axis not in axes])
    x.tally.operations += per_element * x.size + per_result * result.size
    return result


def axes_of(x: Array, dim: Dim) -> set[int]:
    """The dimensions that `dim` names, all for None. ValueError: one that is not there."""
    named = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return {axis_of(x, each) for each in named}


def axis_of(x: Array, dim: int, more: int = 0) -> int:
    """`dim` counted from the front, of an array that gets `more` dimensions."""
    ndim = x.ndim + more
    if not -ndim <= dim < ndim:
        raise ValueError(f"dimension {dim} of an array with {ndim}")
    return dim % ndim


def _indexed(shape: tuple[int, ...], index: tuple[Index, ...]) -> tuple[int, ...]:
    # NumPy's own rules, on an array that shares one element: no memory is taken.
    return np.broadcast_to(np.empty((), np.int8), shape)[index].shape


def _common(dtypes: Sequence[str]) -> str:
    """The type that holds all: floats go before integers, whatever their sizes, as in PyTorch."""
    floats = [dtype for dtype in dtypes if dtype.startswith("float")]
    return str(np.result_type(*(floats or dtypes)))
