"""Symbolic cp.RawKernel and cp.RawModule: a call becomes a launch step."""

import math

from evaluator.program.launch_limits import (
    DEFAULT_DYNAMIC_SHARED_BYTES,
    MAX_BLOCK,
    MAX_BLOCK_THREADS,
    MAX_GRID,
    MAX_SHARED_BYTES,
)
from evaluator.program.tracer.arrays import Array
from evaluator.program.tracer.faults import TraceFault, refused, value_used
from evaluator.program.tracer.recorder import Recorder
from evaluator.program.tracer.scalars import Scalar


class Kernel:
    """One `__global__` function of a module."""

    __slots__ = ("_by_c_name", "_expressions", "_name", "_options", "_recorder", "_shared_limit", "_source")

    def __init__(
        self, recorder: Recorder, source: str, name: str, options: tuple[str, ...], expressions: tuple[str, ...] = ()
    ):
        self._recorder = recorder
        self._source = source
        self._name = name
        self._options = options
        self._expressions = expressions
        self._by_c_name = name not in expressions
        self._shared_limit = DEFAULT_DYNAMIC_SHARED_BYTES

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._shared_limit

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes: int) -> None:
        if type(nbytes) is not int:
            raise TypeError(f"max_dynamic_shared_size_bytes is a {type(nbytes).__name__}, expected int")
        if not 0 <= nbytes <= MAX_SHARED_BYTES:
            raise _launch_error(
                f"max_dynamic_shared_size_bytes = {nbytes}; no device gives a block more than {MAX_SHARED_BYTES} bytes"
            )
        self._shared_limit = nbytes

    def __call__(self, grid, block, args, *, shared_mem: int = 0, **keywords) -> None:
        if keywords:
            raise refused(
                f"{self._name}: {next(iter(keywords))}= is not in the surface; a launch takes shared_mem= only"
            )
        module = self._recorder.module(self._source, self._options, self._expressions)
        fields = {
            "op": "launch",
            "module": module,
            "kernel": self._name,
            "grid": _extent(grid, f"{self._name}: grid", MAX_GRID),
            "block": self._checked_block(block),
            "shared_bytes": self._checked_shared(shared_mem),
            "args": self._checked_arguments(args),
        }
        self._recorder.kernel(module, self._name, self._by_c_name)
        self._recorder.step(fields)

    def _checked_block(self, block) -> list[int]:
        extent = _extent(block, f"{self._name}: block", MAX_BLOCK)
        threads = math.prod(extent)
        if threads > MAX_BLOCK_THREADS:
            raise _launch_error(f"{self._name}: a block of {threads} threads; at most {MAX_BLOCK_THREADS}")
        return extent

    def _checked_shared(self, nbytes) -> int:
        if type(nbytes) is not int:
            raise TypeError(f"{self._name}: shared_mem is a {type(nbytes).__name__}, expected int")
        if not 0 <= nbytes <= self._shared_limit:
            raise _launch_error(
                f"{self._name}: shared_mem={nbytes} bytes, at most {self._shared_limit}; beyond "
                f"{DEFAULT_DYNAMIC_SHARED_BYTES} set kernel.max_dynamic_shared_size_bytes first"
            )
        return nbytes

    def _checked_arguments(self, arguments) -> list[dict]:
        if not isinstance(arguments, tuple | list):
            raise TypeError(f"{self._name}: args is a {type(arguments).__name__}, expected a tuple")
        return [_argument(argument, f"{self._name}: argument {i}") for i, argument in enumerate(arguments)]


class Module:
    """Several kernels of one source."""

    __slots__ = ("_expressions", "_options", "_recorder", "_source")

    def __init__(self, recorder: Recorder, source: str, options: tuple[str, ...], expressions: tuple[str, ...]):
        self._recorder = recorder
        self._source = source
        self._options = options
        self._expressions = expressions

    def get_function(self, name: str) -> Kernel:
        if "<" in name and name not in self._expressions:
            listed = ", ".join(self._expressions) or "none"
            raise ValueError(f"get_function({name!r}): a template must be listed in name_expressions, seen {listed}")
        return Kernel(self._recorder, self._source, _text(name, "name"), self._options, self._expressions)


def raw_kernel(recorder: Recorder, code, name, options=(), backend="nvrtc", **keywords) -> Kernel:
    """cp.RawKernel."""
    _check_backend("RawKernel", backend, keywords)
    return Kernel(recorder, _text(code, "code"), _text(name, "name"), _options(options))


def raw_module(recorder: Recorder, code=None, options=(), backend="nvrtc", name_expressions=None, **keywords) -> Module:
    """cp.RawModule."""
    _check_backend("RawModule", backend, keywords)
    expressions = (
        () if name_expressions is None else tuple(_text(name, "name_expressions") for name in name_expressions)
    )
    return Module(recorder, _text(code, "code"), _options(options), expressions)


def _check_backend(what: str, backend, keywords: dict) -> None:
    if keywords:
        raise refused(f"{what}: {next(iter(keywords))}= is not in the surface")
    if backend != "nvrtc":
        raise refused(f"{what}: backend={backend!r}; only 'nvrtc' is in the surface")


def _text(value, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}, expected str")
    return value


def _options(options) -> tuple[str, ...]:
    if not isinstance(options, tuple):
        raise TypeError(f"options is a {type(options).__name__}, expected a tuple of str")
    return tuple(_text(option, "options") for option in options)


def _extent(value, what: str, limits: tuple[int, int, int]) -> list[int]:
    if not isinstance(value, tuple):
        raise TypeError(f"{what} is a {type(value).__name__}, expected a tuple of 1 to 3 ints")
    if not 1 <= len(value) <= 3:
        raise ValueError(f"{what} has {len(value)} entries, expected 1 to 3")
    extent = []
    for axis, (entry, limit) in enumerate(zip(value, limits, strict=False)):
        if isinstance(entry, Array):
            raise value_used(f"{what}, entry {axis}, an array: it")
        if type(entry) is not int:
            raise TypeError(
                f"{what}: entry {axis} is a {type(entry).__name__}, expected int (use // for whole quotients)"
            )
        if entry < 0 or entry > limit:
            raise _launch_error(f"{what}: entry {axis} is {entry}, CUDA allows 1 to {limit}")
        extent.append(max(1, entry))  # CuPy launches one block where a program asks for none
    return extent + [1] * (3 - len(extent))


def _argument(value, what: str) -> dict:
    if isinstance(value, Array):
        return {"view": value.view()}
    if isinstance(value, Scalar):
        return {"scalar": value.dtype.name, "value": repr(value.value)}
    if isinstance(value, int):  # bool too: CuPy passes both as int64
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{what}: {value} does not fit 64 bits; use cp.uint64(...)")
        return {"int": int(value)}
    if isinstance(value, float):
        return {"float": repr(value)}
    raise TypeError(f"{what} is a {_kind(value)}, expected an array, an int, a float or cp.<dtype>(...)")


def _kind(value) -> str:
    return "NoneType (a null pointer)" if value is None else type(value).__name__


def _launch_error(message: str) -> TraceFault:
    return TraceFault("launch_error", message)
