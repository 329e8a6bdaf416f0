"""Memory safety: guarded runs in several thread orders, and replays that show what state survives."""

import dataclasses
from collections.abc import Sequence

from evaluator.judge.accuracy import Array
from evaluator.judge.bounds import apart, bounds_of, measure
from evaluator.judge.expected import Expected
from evaluator.judge.workbench import Alike, CompiledPlan, RunReport, Session, Workbench
from evaluator.records import Outcome, ProgramFault, Rung
from evaluator.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class Pass:
    """How one guarded run lays out memory and orders threads."""

    order: str  # forward, reverse or random: races show as a difference between them
    guard: str  # side of each buffer that touches a guard page


# Every pair of neighbours differs in order and in guard, so two runs already see both ends of each buffer.
PASSES = (Pass("forward", "right"), Pass("reverse", "left"), Pass("random", "right"), Pass("forward", "left"))


def guarded_run(session: Session, inputs: Sequence[Array], how: Pass, seed: int) -> RunReport:
    """One run from poisoned outputs. Raises ProgramFault for what the guards, canaries and poison show."""
    report = session.run(list(inputs), order=how.order, seed=seed, guard=how.guard)
    if report.modified:
        names = ", ".join(report.modified)
        raise _fault(
            Outcome.MODIFIED_INPUT, f"the program changed its input {names}; inputs must stay as they were given"
        )
    for index, count in enumerate(report.unwritten):
        if count:
            total = report.outputs[index].size
            raise _fault(Outcome.UNWRITTEN_OUTPUT, f"{count} of {total} elements of output {index} were not written")
    if report.state_changed:
        raise _fault(
            Outcome.STATEFUL,
            "writable globals of a module differ after the run from what they were when it was loaded; "
            "keep nothing in __device__ variables, or put back what was there",
        )
    return report


def check_replay(bench: Workbench, session: Session, compiled: CompiledPlan, task: Task, second: Expected) -> None:
    """Replays a session that has been run on other contents, at the same addresses. Raises `stateful`.

    Only a result that a new process gets right is state. A program that is wrong there as well is left to the
    correctness rung, which says more about it.
    """
    if _replay_is_right(bench, session, second, task):
        return
    with bench.open(compiled) as fresh:
        report = fresh.run(list(second.inputs), order="forward", seed=0, guard="right")
    if right(bench, report.outputs, second, task):
        raise _fault(
            Outcome.STATEFUL,
            "a replay on new contents at the same addresses gave another result than a new process; "
            "an output or temporary must not be read before the same run has written it",
        )


def _replay_is_right(bench: Workbench, session: Session, second: Expected, task: Task) -> bool:
    session.refill(list(second.inputs))
    try:
        session.time(1, forget=False)
    except ProgramFault as error:
        if error.fault.outcome is not Outcome.UNWRITTEN_OUTPUT:
            raise
        return False  # the run before wrote everything
    return right(bench, session.outputs(likeness(bench, second, task)), second, task)


def right(bench: Workbench, outputs: Sequence[Array], expected: Expected, task: Task) -> bool:
    """Whether outputs are within their bounds."""
    return all(finding.ok for finding in measure(outputs, expected, task.family, task.precision, bench.compare))


def likeness(bench: Workbench, expected: Expected, task: Task) -> Alike:
    """Tells whether two results of one input agree within twice the bounds: sums of atomics in another order do."""
    bounds = bounds_of(expected, task.family, task.precision)

    def alike(some: Sequence[Array], others: Sequence[Array]) -> bool:
        pairs = zip(some, others, expected.accuracies, bounds, strict=True)
        return not any(apart(bench.compare(one, other, known.scale), bound) for one, other, known, bound in pairs)

    return alike


def _fault(outcome: Outcome, message: str) -> ProgramFault:
    return ProgramFault(outcome, Rung.MEMORY_SAFETY, message)
