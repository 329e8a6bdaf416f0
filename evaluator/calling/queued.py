"""A plan compiled for a GPU, as steps that are queued on whatever stream the caller uses, on the caller's arrays."""

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from evaluator import _core
from evaluator.calling.arguments import results_of
from evaluator.calling.placement import Placement, place
from evaluator.devices.cuda import compiled_plan
from evaluator.devices.cuda.compilation import CompiledModule
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.devices.cuda.compiler import Compiler
from evaluator.devices.signature import pack
from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.plan import Attention, Convolution, Copy, Fill, Launch, LibraryStep, Matmul, Plan, Step, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung

_READ_ONLY = ("evaluator_signature_", "$str", "__unnamed_")  # our own records, and texts for printf and assert


class QueuedProgram:
    """One plan's steps and where its buffers lie. Needs no GPU until it is called, and CuPy for library steps alone."""

    def __init__(self, plan: Plan, architecture: int, limits: Limits):
        """Raises ProgramFault for what NVRTC or a launch check finds, and `unsupported` for library steps without
        CuPy."""
        self.plan, self.results, self.placement = plan, results_of(plan), place(plan)
        self._has_library_steps = _check_library_steps(plan)
        with Compiler(limits) as compiler:
            compiled = compiled_plan.compile(plan, compiler, architecture, limits)
        self.core = _written(compiled, self.placement)

    @property
    def needs_memory(self) -> bool:
        """Whether a call takes memory beside its arrays, which a recorded graph would not keep."""
        return self._has_library_steps or self.placement.scratch_bytes > 0

    def queue(self, stream: int, addresses: Sequence[int]) -> None:
        """Queues every step on a stream; `addresses` are those of the inputs, the outputs, and of the scratch memory.

        Raises CudaError where the driver does not take a step, ProgramFault where a library does not. What a kernel
        does wrong shows later, as for any other.
        """
        self.core.queue(stream, addresses, 0, self.core.steps)


def has_globals(module: CompiledModule) -> bool:
    """Whether kernels write to variables of the module itself."""
    return any(not name.startswith(_READ_ONLY) for name in module.globals)


def _check_library_steps(plan: Plan) -> bool:
    """Whether there are any. ProgramFault where there are and CuPy, which calls the libraries, is not."""
    steps = [step for step in plan.steps if isinstance(step, LibraryStep)]
    if steps and importlib.util.find_spec("cupy") is None:
        what = type(steps[0]).__name__.lower()
        message = f"the program has a library step ({what}), which needs CuPy: install the extra cuda12 or cuda13"
        raise ProgramFault(Outcome.UNSUPPORTED, Rung.COMPILE, message, steps[0].line)
    return bool(steps)


class ForeignStream:
    """A stream of another library on the current device, by the CUDA stream protocol."""

    def __init__(self, pointer: int):
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer


def _library_call(plan: Plan, step: LibraryStep, placement: Placement) -> Callable[[int, list[int]], None]:
    """What queues a library step, by CuPy, as the judge does. Called by the C++ that queues all others, on whatever
    thread it runs, with the device's context current."""
    alone = CompiledPlan(plan=dataclasses.replace(plan, steps=(step,)), modules=(), arguments=(), architecture=0)

    @functools.cache
    def executable(device: int) -> Any:
        from evaluator.devices.cuda.execution import Executable

        return Executable(_core.CudaDevice(device), alone)

    def call(stream: int, buffers: list[int]) -> None:
        import cupy as cp

        device = cp.cuda.runtime.getDevice()
        with cp.cuda.Stream.from_external(ForeignStream(stream)):
            executable(device).queue([buffers[number] + offset for number, offset in placement.buffers])

    return call


def _written(compiled: CompiledPlan, placement: Placement) -> _core.CudaProgram:
    plan = compiled.plan
    scratch = [placement.scratch_bytes] if placement.scratch_bytes else []
    cubins = [module.cubin for module in compiled.modules]
    program = _core.CudaProgram(cubins, [*placement.array_bytes, *scratch], any(map(has_globals, compiled.modules)))
    arguments = iter(compiled.arguments)
    for step in plan.steps:
        _write(program, step, compiled, placement, arguments)
    for view, target in placement.copies:
        program.add_copy(placement.place(plan, view), target, view.size * ITEM_BYTES[plan.dtype(view)])
    return program


def _write(program: _core.CudaProgram, step: Step, compiled: CompiledPlan, placement: Placement, arguments) -> None:
    plan = compiled.plan
    match step:
        case Launch():
            words = [placement.place(plan, word) if isinstance(word, View) else word for word in next(arguments)]
            kernel = compiled.modules[step.module].lowered[step.kernel]
            program.add_launch(step.module, kernel, step.grid, step.block, step.shared_bytes, words)
        case Fill():
            dtype = plan.dtype(step.view)
            pattern = pack(step.value, dtype).to_bytes(8, "little")[: ITEM_BYTES[dtype]]
            program.add_fill(placement.place(plan, step.view), pattern, step.view.size)
        case Copy():
            nbytes = step.source.size * ITEM_BYTES[plan.dtype(step.source)]
            program.add_copy(placement.place(plan, step.source), placement.place(plan, step.target), nbytes)
        case Matmul() | Convolution() | Attention():
            program.add_call(_library_call(plan, step, placement))
