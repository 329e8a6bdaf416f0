"""Which steps of a plan do the work: the share of library steps, and launches whose absence changes nothing."""

from evaluator.judge.expected import Expected
from evaluator.judge.memory_safety import right
from evaluator.judge.workbench import CompiledPlan, Workbench
from evaluator.program.plan import Launch, LibraryStep, Plan
from evaluator.records import ProgramFault
from evaluator.tasks.task import Task

MAX_KNOCK_OUTS = 64  # a plan of more launches is a loop, and one run each would take too long


def own_kernel_share(plan: Plan) -> float | None:
    """1 for own kernels alone, 0 for library steps alone, None for neither or both (only a clock can tell)."""
    own = any(isinstance(step, Launch) for step in plan.steps)
    library = any(isinstance(step, LibraryStep) for step in plan.steps)
    if own == library:
        return None
    return 1.0 if own else 0.0


def idle_launches(bench: Workbench, plan: Plan, compiled: CompiledPlan, expected: Expected, task: Task) -> list[str]:
    """One note for each launch that can be left out while the outputs stay right. Reported, not a fault."""
    launches = [index for index, step in enumerate(plan.steps) if isinstance(step, Launch)]
    if len(launches) > MAX_KNOCK_OUTS:
        return [f"knock-out left out: {len(launches)} launches, at most {MAX_KNOCK_OUTS} are tried"]
    notes = []
    for index in launches:
        step = plan.steps[index]
        if isinstance(step, Launch) and _right_without(bench, compiled, index, expected, task):
            notes.append(f"idle launch: without {step.kernel} of line {step.line} the outputs are the same")
    return notes


def _right_without(bench: Workbench, compiled: CompiledPlan, index: int, expected: Expected, task: Task) -> bool:
    try:
        with bench.open(bench.without(compiled, index)) as session:
            report = session.run(expected.inputs, order="forward", seed=0, guard="right")
    except ProgramFault:
        return False
    return not any(report.unwritten) and right(bench, report.outputs, expected, task)
