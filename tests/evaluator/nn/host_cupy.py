"""A stand-in for CuPy on the host: NumPy's arrays, and raw kernels that run on the emulator.

With it every kernel text and every line of `cupy_nn` runs on a machine without a GPU. Only what the namespace uses is
here; a test that runs against the real CuPy (`gpu`) keeps it honest.
"""

import ctypes
import dataclasses
import re
import types

import numpy as np
import scipy.special

from evaluator.devices import cpu
from evaluator.program.plan import Argument, Buffer, IntArgument, Launch, Module, Plan, ScalarArgument, View
from evaluator.records import Limits


@dataclasses.dataclass(frozen=True)
class MemoryPointer:
    ptr: int


class ndarray(np.ndarray):
    """NumPy's array, with CuPy's address."""

    @property
    def data(self):
        return MemoryPointer(self.__array_interface__["data"][0])


class RawKernel:
    """A kernel that runs on the emulator, where bad accesses, races at barriers and unwritten outputs show."""

    launches: list[str] = []  # noqa: RUF012  # names, in order, for tests that count kernels

    def __init__(self, source: str, name: str, options: tuple[str, ...] = ()):
        self._source, self._name, self._options = source, name, options

    def __call__(self, grid, block, arguments, shared_mem=0):
        RawKernel.launches.append(self._name)
        plan, inputs, outputs = self._plan(grid, block, arguments, shared_mem)
        limits = Limits()
        with cpu.Session(cpu.compile(plan, limits), limits) as session:
            report = session.run(inputs, order="forward", seed=0, guard="right")
        assert report.unwritten == (0,) * len(outputs), f"{self._name} leaves {report.unwritten} elements unwritten"
        assert report.modified == ()
        for out, written in zip(outputs, report.outputs, strict=True):
            _memory(out)[:] = np.ascontiguousarray(written).view(np.uint8).ravel()

    def _plan(self, grid, block, arguments, shared_mem):
        parameters = _parameters(self._source, self._name)
        assert len(parameters) == len(arguments), (parameters, arguments)
        buffers: list[Buffer] = []
        inputs, outputs, out_views = [], [], []
        packed: list[Argument] = []
        for parameter, argument in zip(parameters, arguments, strict=True):
            if isinstance(argument, np.ndarray):
                assert "*" in parameter, parameter
                memory, start = _memory(argument), argument.__array_interface__["data"][0]
                elements = memory.view(argument.dtype)
                offset = (start - memory.__array_interface__["data"][0]) // argument.itemsize
                name = "bool" if argument.dtype == np.bool_ else argument.dtype.name
                constant = parameter.startswith("const ")
                buffers.append(Buffer(f"b{len(buffers)}", "input" if constant else "temporary", name, elements.shape))
                view = View(len(buffers) - 1, offset, (elements.size - offset,))
                packed.append(view)
                if constant:
                    inputs.append(elements)
                else:
                    outputs.append(argument)
                    out_views.append(view)
            elif isinstance(argument, np.generic):
                packed.append(ScalarArgument(argument.dtype.name, argument.item()))
            else:
                packed.append(IntArgument(argument))
        # A plan lists its inputs before its temporaries.
        order = sorted(range(len(buffers)), key=lambda index: buffers[index].role != "input")
        place = {old: new for new, old in enumerate(order)}
        moved = [dataclasses.replace(x, buffer=place[x.buffer]) if isinstance(x, View) else x for x in packed]
        outs = tuple(dataclasses.replace(x, buffer=place[x.buffer]) for x in out_views)
        three = [(*extent, 1, 1)[:3] for extent in (grid, block)]
        step = Launch(0, self._name, three[0], three[1], shared_mem, tuple(moved), line=1)
        module = Module(self._source, self._options, (self._name,))
        return Plan(tuple(buffers[index] for index in order), (module,), (step,), outs), inputs, outputs


def _parameters(source: str, name: str) -> list[str]:
    (text,) = re.findall(rf"\b{name}\(([^)]*)\)\s*{{", source)
    return [" ".join(parameter.split()) for parameter in text.split(",")]


def _memory(array: np.ndarray) -> np.ndarray:
    """The bytes from the first to the last element of `array`, whatever its strides; shared, not copied."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return np.frombuffer((ctypes.c_char * (high - low)).from_address(low), np.uint8)


def convolve(exact, geometry, x, weight, out):
    """What cuDNN computes of a geometry, by the oracle's algorithm."""
    assert (x.shape, weight.shape, out.shape) == (geometry.x, geometry.weight, geometry.out)
    assert x.flags.c_contiguous
    assert weight.flags.c_contiguous
    wide, weights = x.astype(np.float64), weight.astype(np.float64)
    windows = geometry.stride, geometry.padding, geometry.dilation
    if not geometry.transposed:
        out[:] = exact.forward(wide, weights, *windows, groups=x.shape[1] // weight.shape[1])
        return
    lengths = zip(x.shape[2:], weight.shape[2:], out.shape[2:], *windows, strict=True)
    extra = tuple(m - ((n - 1) * s - 2 * p + d * (w - 1) + 1) for n, w, m, s, p, d in lengths)
    groups = out.shape[1] // weight.shape[1]
    out[:] = exact.transposed(wide, weights, *windows[:2], extra, windows[2], groups)


@dataclasses.dataclass(frozen=True)
class CublasMatrix:
    """As `_core.CublasMatrix`, and readable."""

    address: int
    transposed: bool
    leading: int
    stride: int


class Cublas:
    """Reads operands by address, leading dimension and stride, as cuBLAS does."""

    def matmul(self, stream, number, batch, m, n, k, a, b, out):
        dtype = {0: np.float32, 1: np.float64, 2: np.float16}[number]
        for index in range(batch):
            left, right = self._matrix(a, index, m, k, dtype), self._matrix(b, index, k, n, dtype)
            self._matrix(out, index, m, n, dtype)[:] = (left.astype(np.float64) @ right.astype(np.float64)).astype(
                dtype
            )

    @staticmethod
    def _matrix(matrix, index, rows, columns, dtype):
        size = np.dtype(dtype).itemsize
        stored = (columns, rows) if matrix.transposed else (rows, columns)
        start = matrix.address + index * matrix.stride * size
        nbytes = ((stored[0] - 1) * matrix.leading + stored[1]) * size
        memory = np.frombuffer((ctypes.c_char * nbytes).from_address(start), dtype)
        found = np.lib.stride_tricks.as_strided(memory, stored, (matrix.leading * size, size))
        return found.T if matrix.transposed else found


def modules() -> tuple[types.ModuleType, types.ModuleType]:
    """Modules to put in the places of `cupy` and `cupyx.scipy`."""
    cupy = types.ModuleType("cupy")
    for name in dir(np):
        if not name.startswith("_"):
            setattr(cupy, name, _as_cupy(getattr(np, name)))
    cupy.ndarray, cupy.RawKernel = ndarray, RawKernel
    tricks = types.SimpleNamespace(as_strided=_as_cupy(np.lib.stride_tricks.as_strided))
    cupy.lib = types.SimpleNamespace(stride_tricks=tricks)
    stream, device = types.SimpleNamespace(ptr=0), types.SimpleNamespace(id=0)
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream, Device=lambda: device)
    scipy_ = types.ModuleType("cupyx.scipy")
    scipy_.special = scipy.special
    return cupy, scipy_


def _as_cupy(value):
    """A function of NumPy whose arrays come out as this module's; anything else as it is."""
    if isinstance(value, type) or not callable(value) or isinstance(value, types.ModuleType):
        return value

    def wrapped(*arguments, **keywords):
        result = value(*arguments, **keywords)
        return result.view(ndarray) if type(result) is np.ndarray else result

    return wrapped
