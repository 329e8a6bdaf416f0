"""The names a program sees: `cp`, `math`, `lib` and a few builtins."""

import builtins
import math as python_math

from evaluator.program.dtypes import FLOAT_DTYPES
from evaluator.program.surface import BUILTINS, LIB, MATH
from evaluator.program.tracer import kernels, library
from evaluator.program.tracer.arrays import Array, allocate, as_shape, copy
from evaluator.program.tracer.faults import refused
from evaluator.program.tracer.recorder import Recorder
from evaluator.program.tracer.scalars import Dtype, Scalar, ScalarType, dtype_of, plain_number


class Cupy:
    """`import cupy as cp`. Parameters have CuPy's names and order."""

    bool_ = ScalarType("bool")
    int8, int16, int32, int64 = (ScalarType(name) for name in ("int8", "int16", "int32", "int64"))
    uint8, uint16, uint32, uint64 = (ScalarType(name) for name in ("uint8", "uint16", "uint32", "uint64"))
    float16, float32, float64 = (ScalarType(name) for name in ("float16", "float32", "float64"))
    inf, nan, pi, e = python_math.inf, python_math.nan, python_math.pi, python_math.e
    ndarray = object()  # for annotations: it can be neither called nor asked

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder):
        self._recorder = recorder

    def RawKernel(self, code, name, options=(), backend="nvrtc", **keywords):
        return kernels.raw_kernel(self._recorder, code, name, options, backend, **keywords)

    def RawModule(self, *, code=None, options=(), backend="nvrtc", name_expressions=None, **keywords):
        return kernels.raw_module(self._recorder, code, options, backend, name_expressions, **keywords)

    def empty(self, shape, dtype=float, order="C"):
        _check_order(order)
        return allocate(self._recorder, shape, dtype)

    def zeros(self, shape, dtype=float, order="C"):
        return _filled(self.empty(shape, dtype, order), 0)

    def ones(self, shape, dtype=None, order="C"):
        return _filled(self.empty(shape, dtype, order), 1)

    def full(self, shape, fill_value, dtype=None, order="C"):
        return _filled(self.empty(shape, _dtype_of_value(fill_value) if dtype is None else dtype, order), fill_value)

    def empty_like(self, prototype, dtype=None, order="K", subok=None, shape=None):
        if not isinstance(prototype, Array):
            raise TypeError(f"seen a {type(prototype).__name__}, expected an array")
        _check_order(order)
        return allocate(
            self._recorder,
            prototype.shape if shape is None else as_shape(shape),
            prototype.dtype if dtype is None else dtype,
        )

    def zeros_like(self, a, dtype=None, order="K", subok=None, shape=None):
        return _filled(self.empty_like(a, dtype, order, subok, shape), 0)

    def ones_like(self, a, dtype=None, order="K", subok=None, shape=None):
        return _filled(self.empty_like(a, dtype, order, subok, shape), 1)

    def full_like(self, a, fill_value, dtype=None, order="K", subok=None, shape=None):
        return _filled(self.empty_like(a, dtype, order, subok, shape), fill_value)

    def copyto(self, dst, src):
        if not isinstance(dst, Array):
            raise TypeError(f"copyto: dst is a {type(dst).__name__}, expected an array")
        if isinstance(src, Array):
            copy(dst, src)
            return
        if isinstance(plain_number(src), float) and dst.dtype.name not in FLOAT_DTYPES:
            raise TypeError(f"copyto: cannot cast a float to {dst.dtype.name}")
        dst.fill(src)

    def matmul(self, x1, x2, /, out=None):
        return library.matmul(x1, x2, out)


class Namespace:
    """A module of plain attributes."""

    def __init__(self, **members):
        self.__dict__.update(members)


def _filled(array: Array, value) -> Array:
    array.fill(value)
    return array


def _check_order(order) -> None:
    if order not in ("C", "K", "A"):
        raise refused(f"order={order!r}; only 'C' is in the surface")


def _dtype_of_value(value) -> Dtype:
    if isinstance(value, Scalar):
        return value.dtype
    number = plain_number(value)
    return dtype_of(bool if isinstance(value, bool) else type(number))


def program_globals(recorder: Recorder) -> dict:
    """Globals for the program's code, with nothing of the real builtins but BUILTINS."""
    modules = {
        "cupy": Cupy(recorder),
        "math": Namespace(**{name: getattr(python_math, name) for name in MATH}),
        "evaluator": Namespace(lib=Namespace(**{name: getattr(library, name) for name in LIB})),
    }

    def import_module(name, global_names=None, local_names=None, members=(), level=0):
        if name not in modules:
            raise refused(f"import of {name} is not in the surface")
        return modules[name]

    functions = {name: getattr(builtins, name) for name in BUILTINS}
    return {"__builtins__": {"__import__": import_module, **functions}}
