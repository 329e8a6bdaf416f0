"""Which steps of a plan do the work: the share of library steps, and launches whose absence changes nothing."""

from collections.abc import Iterator, Sequence
from itertools import compress

from evaluator.judge.expected import Expected
from evaluator.judge.memory_safety import right
from evaluator.judge.workbench import CompiledPlan, Workbench
from evaluator.program.plan import Launch, LibraryStep, Plan
from evaluator.records import ProgramFault
from evaluator.tasks.task import Task

MAX_KNOCK_OUTS = 64  # a plan of more launches is a loop, and one run each would take too long


class DeviceLost(Exception):
    """A kernel that missed what a launch gives it broke the device; nothing more can be tried on it."""


def own_kernel_share(plan: Plan, step_us: Sequence[float] | None = None) -> float | None:
    """1 for own kernels alone, 0 for library steps alone, None for neither.

    Where there are both, their share of `step_us`, the time of each step; None without it.
    """
    own = [isinstance(step, Launch) for step in plan.steps]
    library = [isinstance(step, LibraryStep) for step in plan.steps]
    if any(own) != any(library):
        return 1.0 if any(own) else 0.0
    if step_us is None or not any(own):
        return None
    own_us, library_us = (sum(compress(step_us, which)) for which in (own, library))
    return own_us / (own_us + library_us)


def idle_launches(
    bench: Workbench, plan: Plan, compiled: CompiledPlan, expected: Expected, task: Task
) -> Iterator[str]:
    """One note for each launch that can be left out while the outputs stay right. Reported, not a fault.

    To be asked last: raises DeviceLost, after a note, where a kernel that missed what a launch gives it broke the
    device.
    """
    launches = [(index, step) for index, step in enumerate(plan.steps) if isinstance(step, Launch)]
    if len(launches) > MAX_KNOCK_OUTS:
        yield f"knock-out left out: {len(launches)} launches, at most {MAX_KNOCK_OUTS} are tried"
        return
    for index, step in launches:
        try:
            if _right_without(bench, compiled, index, expected, task):
                yield f"idle launch: without {step.kernel} of line {step.line} the outputs are the same"
        except DeviceLost:
            yield f"knock-out ended: without {step.kernel} of line {step.line} another kernel broke the device"
            raise


def _right_without(bench: Workbench, compiled: CompiledPlan, index: int, expected: Expected, task: Task) -> bool:
    try:
        with bench.open(bench.without(compiled, index)) as session:
            report = session.run(expected.inputs, order="forward", seed=0, guard="right")
    except ProgramFault as error:
        if bench.survived():
            return False
        raise DeviceLost from error  # which keeps the buffers of a kernel that may still run
    return not any(report.unwritten) and right(bench, report.outputs, expected, task)
