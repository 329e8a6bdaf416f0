"""Dtypes and typed scalars of the symbolic CuPy."""

import math

from evaluator.program.dtypes import FLOAT_DTYPES, ITEM_BYTES, integer_range
from evaluator.program.tracer.faults import refused

_CODES = {
    "?": "bool",
    "b1": "bool",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "e": "float16",
    "f": "float32",
    "d": "float64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
}


class Dtype:
    """An element type, as x.dtype is one."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    @property
    def itemsize(self) -> int:
        return ITEM_BYTES[self.name]

    def __eq__(self, other) -> bool:
        return isinstance(other, Dtype | ScalarType | str | type) and self.name == dtype_of(other).name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def convert(self, value: int | float) -> int | float:
        """`value` as this type holds it, not yet rounded to its precision."""
        if self.name in FLOAT_DTYPES:
            return float(value)
        if self.name == "bool":
            return int(bool(value))
        if isinstance(value, float) and not math.isfinite(value):
            raise OverflowError(f"cannot convert {value} to {self.name}")
        low, high = integer_range(self.name)
        if not low <= int(value) <= high:
            raise OverflowError(f"{value} is out of bounds for {self.name} ({low} to {high})")
        return int(value)

    def text(self, value: int | float) -> str:
        """The plan's spelling of `value` in this type."""
        return repr(self.convert(value))


class ScalarType:
    """cp.float32 and its like: names a dtype where one is wanted, and makes typed scalars when called."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __call__(self, value=0) -> "Scalar":
        dtype = dtype_of(self)
        return Scalar(dtype, dtype.convert(plain_number(value)))

    def __eq__(self, other) -> bool:
        return isinstance(other, Dtype | ScalarType) and dtype_of(self).name == dtype_of(other).name

    def __hash__(self) -> int:
        return hash(self._name)

    def __str__(self) -> str:
        return f"<class 'cupy.{self._name}'>"


class Scalar:
    """A number with a dtype, as cp.float32(0.5): an argument for a kernel, a value to fill with."""

    __slots__ = ("dtype", "value")

    def __init__(self, dtype: Dtype, value: int | float):
        self.dtype = dtype
        self.value = value

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def _no_arithmetic(self, other=None):
        raise refused(f"arithmetic on cp.{self.dtype.name}(...) is not in the surface; compute first, convert last")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_arithmetic
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _no_arithmetic
    __neg__ = __pos__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _no_arithmetic
    __eq__ = __ne__ = _no_arithmetic
    __str__ = _no_arithmetic

    def __hash__(self) -> int:
        return hash(self.value)


def plain_number(value) -> int | float:
    """The number in a Python number or typed scalar."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    float(value)  # an array says here that its values are not known
    raise TypeError(f"seen a {type(value).__name__}, expected a number")


def dtype_of(spec) -> Dtype:
    """The dtype that CuPy sees in cp.float32, x.dtype, "float32", "f4", float, int or bool."""
    if isinstance(spec, Dtype):
        return spec
    if isinstance(spec, ScalarType):
        return Dtype(spec._name)
    if spec is float or spec is None:
        return Dtype("float64")
    if spec is int:
        return Dtype("int64")
    if spec is bool:
        return Dtype("bool")
    name = _CODES.get(spec, spec) if isinstance(spec, str) else None
    if name not in ITEM_BYTES:
        raise TypeError(f"data type {spec if isinstance(spec, str) else type(spec).__name__!r} not understood")
    return Dtype(name)
