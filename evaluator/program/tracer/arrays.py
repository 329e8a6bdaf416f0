"""Symbolic arrays: they know their shape, dtype and place in a buffer, and have no contents.

Every operation either gives what CuPy would give, or raises with the reason.
"""

import math

from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.tracer.faults import refused, value_used
from evaluator.program.tracer.indexing import contiguous_strides, is_contiguous, select
from evaluator.program.tracer.recorder import Recorder
from evaluator.program.tracer.scalars import Dtype, Scalar, dtype_of, plain_number


def _no_arithmetic(symbol: str):
    def operation(self, other=None):
        raise refused(f"`{symbol}` on an array is not in the surface; write a kernel for it (only @ is a library step)")

    return operation


def _no_values(what: str):
    def operation(self, *arguments):
        raise value_used(what)

    return operation


class Array:
    """A contiguous view of one buffer."""

    __slots__ = ("_buffer", "_offset", "_recorder", "dtype", "shape")

    def __init__(self, recorder: Recorder, buffer: int, offset: int, shape: tuple[int, ...], dtype: Dtype):
        self._recorder = recorder
        self._buffer = buffer
        self._offset = offset
        self.shape = shape
        self.dtype = dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return ITEM_BYTES[self.dtype.name]

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> "Array":
        shape = self.shape[::-1]
        if not is_contiguous(shape, contiguous_strides(self.shape)[::-1]):
            raise refused(
                f".T of an array of shape {self.shape} is not contiguous; pass the array as it is and swap the "
                "indices in the kernel"
            )
        return self._view(self._offset, shape)

    def reshape(self, *shape, order: str = "C") -> "Array":
        if order != "C":
            raise refused(f"order={order!r}; only 'C' is in the surface")
        wanted = as_shape(shape[0] if len(shape) == 1 else shape, unknown=True)
        if wanted.count(-1) > 1:
            raise ValueError("can only specify one unknown dimension")
        known = math.prod(extent for extent in wanted if extent != -1)
        if -1 in wanted and known and self.size % known == 0:
            wanted = tuple(self.size // known if extent == -1 else extent for extent in wanted)
        if -1 in wanted or math.prod(wanted) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {wanted}")
        return self._view(self._offset, wanted)

    def ravel(self, order: str = "C") -> "Array":
        return self.reshape(-1, order=order) if self.size else self.reshape((0,), order=order)

    def fill(self, value) -> None:
        self._recorder.step({"op": "fill", "view": self.view(), "value": self.dtype.text(plain_number(value))})

    def view(self) -> dict:
        """This array in the plan's schema."""
        return {"buffer": self._buffer, "offset": self._offset, "shape": list(self.shape)}

    def _view(self, offset: int, shape: tuple[int, ...]) -> "Array":
        return Array(self._recorder, self._buffer, offset, shape, self.dtype)

    def _overlaps(self, other: "Array") -> bool:
        apart = self._offset + self.size <= other._offset or other._offset + other.size <= self._offset
        return self._buffer == other._buffer and not apart and self.size > 0 and other.size > 0

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __getitem__(self, key) -> "Array":
        offset, shape = self._select(key)
        return self._view(self._offset + offset, shape)

    def __setitem__(self, key, value) -> None:
        target = self[key]
        if isinstance(value, Array):
            copy(target, value)
        else:
            target.fill(value)

    def _select(self, key) -> tuple[int, tuple[int, ...]]:
        for entry in key if isinstance(key, tuple) else (key,):
            if isinstance(entry, Array):
                raise refused("indexing with an array is not in the surface; index inside a kernel")
            if entry is None:
                raise refused("indexing with None is not in the surface; use .reshape")
        try:
            return select(self.shape, key)
        except ValueError as error:
            raise refused(str(error)) from None

    def __matmul__(self, other) -> "Array":
        from evaluator.program.tracer import library  # which needs this class

        return library.matmul(self, other)

    def __iter__(self):
        raise refused("iterating over an array is not in the surface; use for i in range(len(a)) and a[i]")

    def __hash__(self):
        raise TypeError("unhashable type: 'ndarray'")

    def __repr__(self) -> str:
        return f"array of shape {self.shape} and dtype {self.dtype.name}"

    __bool__ = _no_values("the truth of an array")
    __int__ = _no_values("int() of an array")
    __index__ = _no_values("an array used as an index or integer")
    __float__ = _no_values("float() of an array")
    __complex__ = _no_values("complex() of an array")
    __round__ = _no_values("round() of an array")
    __str__ = _no_values("str() of an array")
    __contains__ = _no_values("`in` on an array")

    __add__ = __radd__ = __iadd__ = _no_arithmetic("+")
    __sub__ = __rsub__ = __isub__ = _no_arithmetic("-")
    __mul__ = __rmul__ = __imul__ = _no_arithmetic("*")
    __truediv__ = __rtruediv__ = __itruediv__ = _no_arithmetic("/")
    __floordiv__ = __rfloordiv__ = __ifloordiv__ = _no_arithmetic("//")
    __mod__ = __rmod__ = __imod__ = _no_arithmetic("%")
    __divmod__ = __rdivmod__ = _no_arithmetic("divmod")
    __lshift__ = __rlshift__ = __ilshift__ = _no_arithmetic("<<")
    __rshift__ = __rrshift__ = __irshift__ = _no_arithmetic(">>")
    __and__ = __rand__ = __iand__ = _no_arithmetic("&")
    __or__ = __ror__ = __ior__ = _no_arithmetic("|")
    __xor__ = __rxor__ = __ixor__ = _no_arithmetic("^")
    __neg__ = _no_arithmetic("-")
    __pos__ = _no_arithmetic("+")
    __invert__ = _no_arithmetic("~")
    __abs__ = _no_arithmetic("abs")
    __eq__ = _no_arithmetic("==")
    __ne__ = _no_arithmetic("!=")
    __lt__ = _no_arithmetic("<")
    __le__ = _no_arithmetic("<=")
    __gt__ = _no_arithmetic(">")
    __ge__ = _no_arithmetic(">=")


def as_shape(value, unknown: bool = False) -> tuple[int, ...]:
    """An int, or a sequence of them, as a shape. `unknown` lets -1 through."""
    entries = tuple(value) if isinstance(value, tuple | list) else (value,)
    for entry in entries:
        if isinstance(entry, Array):
            raise value_used("an array used as a dimension")
        if isinstance(entry, Scalar):
            raise refused("a typed scalar as a dimension is not in the surface; use a plain int")
        if type(entry) is not int:
            raise TypeError(f"a dimension is a {type(entry).__name__}, expected int (use // for whole quotients)")
        if entry < (-1 if unknown else 0):
            raise ValueError(f"negative dimensions are not allowed, seen {entry}")
    return entries


def allocate(recorder: Recorder, shape, dtype) -> Array:
    """A new uninitialised array."""
    checked, kind = as_shape(shape), dtype_of(dtype)
    return Array(recorder, recorder.buffer("temporary", kind.name, checked), 0, checked, kind)


def copy(target: Array, source: Array) -> None:
    """Records target[...] = source."""
    if target.dtype != source.dtype:
        raise refused(f"a copy from {source.dtype.name} to {target.dtype.name} converts; convert in a kernel")
    if target.shape != source.shape:
        raise refused(f"a copy from shape {source.shape} to shape {target.shape}; shapes must be equal")
    if target._buffer == source._buffer and target._offset == source._offset:
        return  # onto itself
    if target._overlaps(source):
        raise refused("a copy between overlapping parts of one array has no defined order; copy through another array")
    target._recorder.step({"op": "copy", "from": source.view(), "to": target.view()})
