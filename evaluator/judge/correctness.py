"""Correctness: every case within its bound, alike in every thread order."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from evaluator.judge.accuracy import Array
from evaluator.judge.bounds import Finding, apart, bounds_of, describe, measure, outcome_of
from evaluator.judge.cases import cases_of
from evaluator.judge.expected import Expected
from evaluator.judge.memory_safety import PASSES, guarded_run
from evaluator.judge.modes import Effort
from evaluator.judge.seeds import derive
from evaluator.judge.workbench import Session, Workbench
from evaluator.records import CaseError, Outcome, ProgramFault, Rung
from evaluator.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class Case:
    """One draw that a program is tried on."""

    name: str
    seed: int
    once: bool = False  # made for one program alone


def schedule(task: Task, effort: Effort, seed: int, only: Sequence[str] | None) -> list[Case]:
    """Cases in the order in which they are tried: plain first, then one draw of each hidden case, then the rest."""
    names = named(task, only)
    rounds = max(effort.plain_seeds, effort.hidden_seeds)
    return [
        Case(name, derive(seed, task.id, name, i)) for i in range(rounds) for name in names if i < _draws(effort, name)
    ]


def named(task: Task, only: Sequence[str] | None) -> list[str]:
    """Names of the cases of a job, plain first."""
    return [name for name in cases_of(task) if only is None or name in only or name == "plain"]


def _draws(effort: Effort, name: str) -> int:
    return effort.plain_seeds if name == "plain" else effort.hidden_seeds


def disagreement(
    bench: Workbench, outputs: Sequence[Array], again: Sequence[Array], expected: Expected, task: Task
) -> ProgramFault | None:
    """Outputs of the same input in two runs must agree within the bound; `nondeterministic` where they do not."""
    bounds = bounds_of(expected, task.family, task.precision)
    arrays = zip(outputs, again, expected.accuracies, bounds, strict=True)
    for index, (one, two, accuracy, bound) in enumerate(arrays):
        difference = bench.compare(two, one, accuracy.scale)
        if apart(difference, bound):  # sums of atomics in another order are no race
            return ProgramFault(
                Outcome.NONDETERMINISTIC,
                Rung.CORRECTNESS,
                f"another order of threads changes output {index} at flat index {difference.worst_index} from "
                f"{difference.worst_expected:.9g} to {difference.worst_seen:.9g}; look for a missing "
                "__syncthreads() or threads that write one element",
            )
    return None


def check_cases(
    bench: Workbench, session: Session, task: Task, size: str, cases: Iterable[Case]
) -> Iterator[CaseError]:
    """Runs every case, in thread orders and guard sides by turns. Raises ProgramFault at the first that fails."""
    for number, case in enumerate(cases):
        expected = bench.expected(task, size, case.name, case.seed, once=case.once)
        if not expected.usable:
            continue  # the reference itself overflows here, so the case asks for what nobody could avoid
        report = guarded_run(session, expected.inputs, PASSES[number % len(PASSES)], case.seed)
        finding, shapes = worst(bench, report.outputs, expected, task), [x.shape for x in expected.exact]
        if not finding.ok:
            # The same input in another order tells a race from a plain mistake.
            again = guarded_run(session, expected.inputs, PASSES[(number + 1) % len(PASSES)], case.seed)
            if fault := disagreement(bench, report.outputs, again.outputs, expected, task):
                raise fault
        del report, expected  # gigabytes, perhaps, that the next case needs
        yield case_error(finding, case, shapes)


def worst(bench: Workbench, outputs: Sequence[Array], expected: Expected, task: Task) -> Finding:
    """The output that is furthest beyond its bound, or closest to it."""
    findings = measure(outputs, expected, task.family, task.precision, bench.compare)
    return max(findings, key=lambda finding: finding.excess)


def worst_of_each(errors: Iterable[CaseError]) -> list[CaseError]:
    """One record per case name: its largest error over bound."""
    worst: dict[str, CaseError] = {}
    for error in errors:
        held = worst.get(error.case)
        if held is None or error.error * held.bound > held.error * error.bound:
            worst[error.case] = error
    return list(worst.values())


def case_error(finding: Finding, case: Case, shapes: Sequence[tuple[int, ...]]) -> CaseError:
    """What is recorded of one case: the measure that comes closer to its bound. `shapes` are those of the outputs.

    Raises `wrong_value` or `precision_downgrade` where the error is beyond its bound.
    """
    errors, bound = finding.errors, finding.bound
    if not finding.ok:
        message = describe(finding, case.name, case.seed, shapes[finding.output])
        raise ProgramFault(outcome_of(errors), Rung.CORRECTNESS, message)
    if errors.norm_error * bound.element > errors.element_error * bound.norm:
        return CaseError(case=case.name, seed=case.seed, error=errors.norm_error, bound=bound.norm)
    return CaseError(case=case.name, seed=case.seed, error=errors.element_error, bound=bound.element)
