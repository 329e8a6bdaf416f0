"""A plan compiled for a GPU, as steps that are queued on whatever stream the caller uses, on the caller's arrays."""

from collections.abc import Sequence

from evaluator import _core
from evaluator.calling.arguments import results_of
from evaluator.calling.placement import Placement, place
from evaluator.devices.cuda import compiled_plan
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.devices.cuda.compiler import Compiler
from evaluator.devices.signature import pack
from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.plan import Copy, Fill, Launch, Plan, Step, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung


class QueuedProgram:
    """One plan's steps and where its buffers lie. Needs no GPU before it is called."""

    def __init__(self, plan: Plan, architecture: int, limits: Limits):
        """Raises ProgramFault for what NVRTC or a launch check finds, and `unsupported` where the plan has library
        steps: cuBLAS and cuDNN would need handles and workspaces of the caller's stream."""
        _refuse_library_steps(plan)
        with Compiler(limits) as compiler:
            compiled = compiled_plan.compile(plan, compiler, architecture, limits)
        self.plan, self.results, self.placement = plan, results_of(plan), place(plan)
        self.core = _written(compiled, self.placement)

    def queue(self, stream: int, addresses: Sequence[int]) -> None:
        """Queues every step on a stream; `addresses` are those of the inputs, the outputs, and of the scratch memory.

        Raises CudaError where the driver does not take a step. What a kernel does wrong shows later, as for any other.
        """
        self.core.queue(stream, addresses, 0, self.core.steps)


def _refuse_library_steps(plan: Plan) -> None:
    for step in plan.steps:
        if not isinstance(step, Launch | Fill | Copy):
            what = type(step).__name__.lower()
            message = f"the program has a library step ({what}), which no caller's stream can take; write a kernel"
            raise ProgramFault(Outcome.UNSUPPORTED, Rung.COMPILE, message, step.line)


def _written(compiled: CompiledPlan, placement: Placement) -> _core.CudaProgram:
    plan = compiled.plan
    scratch = [placement.scratch_bytes] if placement.scratch_bytes else []
    program = _core.CudaProgram([module.cubin for module in compiled.modules], [*placement.array_bytes, *scratch])
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
