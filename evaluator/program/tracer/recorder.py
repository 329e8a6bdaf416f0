"""Writes down what `forward` does, in the plan's JSON schema, as plain dicts and lists."""

import math
import sys
from types import FrameType

from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.tracer.faults import TraceFault

PROGRAM_FILE = "<program>"  # the file name under which the program's code is compiled
MAX_DIMENSIONS = 32
MAX_MODULES = 64  # each is compiled for itself, for up to the time that one may take


def program_line() -> int:
    """Line of the innermost frame of the program's own code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != PROGRAM_FILE:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 1


class Recorder:
    """Buffers, modules and steps in the order in which the program makes them."""

    __slots__ = ("_module_index", "buffers", "c_names", "max_bytes", "max_steps", "modules", "nbytes", "steps")

    def __init__(self, max_steps: int, max_bytes: int):
        self.buffers: list[dict] = []
        self.modules: list[dict] = []
        self.c_names: list[list[str]] = []  # per module: kernels looked up by C name, not by name expression
        self.steps: list[dict] = []
        self.nbytes = 0
        self.max_steps = max_steps
        self.max_bytes = max_bytes
        self._module_index: dict[tuple, int] = {}

    def buffer(self, role: str, dtype: str, shape: tuple[int, ...], name: str = "") -> int:
        """Index of a new buffer; temporaries name themselves."""
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(f"an array of {len(shape)} dimensions; at most {MAX_DIMENSIONS}")
        nbytes = math.prod(shape) * ITEM_BYTES[dtype]
        self.nbytes += nbytes
        if role == "temporary":
            name = self._temporary_name()
            self._check_memory(shape, dtype, nbytes)
        self.buffers.append({"name": name, "role": role, "dtype": dtype, "shape": list(shape)})
        return len(self.buffers) - 1

    def _temporary_name(self) -> str:
        taken = {buffer["name"] for buffer in self.buffers if buffer["role"] == "input"}
        name = f"t{len(self.buffers)}"
        while name in taken:
            name += "_"
        return name

    def _check_memory(self, shape: tuple[int, ...], dtype: str, nbytes: int) -> None:
        if self.nbytes > self.max_bytes:
            raise TraceFault(
                "out_of_memory",
                f"an array of shape {shape} and dtype {dtype} ({nbytes} bytes) brings the plan to {self.nbytes} bytes; "
                f"at most {self.max_bytes}",
            )
        if len(self.buffers) >= self.max_steps:
            raise TraceFault("trace_error", f"more than {self.max_steps} arrays; a plan may not be longer")

    def module(self, source: str, options: tuple[str, ...], expressions: tuple[str, ...]) -> int:
        """Index of the module; kernels of one source and one set of options share it, as they do in CuPy."""
        key = (source, options, expressions)
        if key not in self._module_index:
            if len(self.modules) >= MAX_MODULES:
                message = f"more than {MAX_MODULES} sources are compiled; put kernels into one RawModule"
                raise TraceFault("trace_error", message)
            self._module_index[key] = len(self.modules)
            self.modules.append({"source": source, "options": list(options), "kernels": []})
            self.c_names.append([])
        return self._module_index[key]

    def kernel(self, module: int, name: str, by_c_name: bool) -> None:
        """Notes that a step launches this kernel."""
        kernels = self.modules[module]["kernels"]
        if name not in kernels:
            kernels.append(name)
            if by_c_name:
                self.c_names[module].append(name)

    def step(self, fields: dict) -> None:
        if len(self.steps) >= self.max_steps:
            raise TraceFault("trace_error", f"more than {self.max_steps} steps; a plan may not be longer")
        self.steps.append({**fields, "line": program_line()})
