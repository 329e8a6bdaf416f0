"""Correctness: every case within its bound, alike in every thread order."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from evaluator.judge.bounds import Finding, bounds_of, describe, measure, outcome_of
from evaluator.judge.cases import cases_of
from evaluator.judge.expected import Array, Expected
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


def schedule(task: Task, effort: Effort, seed: int, only: Sequence[str] | None) -> list[Case]:
    """Cases in the order in which they are tried: plain first, then one draw of each hidden case, then the rest."""
    names = [name for name in cases_of(task) if only is None or name in only or name == "plain"]
    rounds = max(effort.plain_seeds, effort.hidden_seeds)
    return [
        Case(name, derive(seed, task.id, name, i)) for i in range(rounds) for name in names if i < _draws(effort, name)
    ]


def _draws(effort: Effort, name: str) -> int:
    return effort.plain_seeds if name == "plain" else effort.hidden_seeds


def disagreement(
    bench: Workbench, outputs: Sequence[Array], again: Sequence[Array], expected: Expected, task: Task
) -> ProgramFault | None:
    """Outputs of the same input in two runs must agree within the bound; `nondeterministic` where they do not."""
    bounds = bounds_of(expected, task.family, task.precision)
    for index, (one, two, bound) in enumerate(zip(outputs, again, bounds, strict=True)):
        difference = bench.compare(two, one.astype(np.float64))
        # Each may be off by its bound to either side. Sums of atomics in another order are no race.
        if difference.norm_error > 2 * bound.norm or difference.element_error > 2 * bound.element:
            return ProgramFault(
                Outcome.NONDETERMINISTIC,
                Rung.CORRECTNESS,
                f"another order of threads changes output {index} at flat index {difference.worst_index} from "
                f"{difference.worst_expected:.9g} to {difference.worst_seen:.9g}; look for a missing "
                "__syncthreads() or threads that write one element",
            )
    return None


def judge_case(bench: Workbench, outputs: Sequence[Array], expected: Expected, task: Task, case: Case) -> CaseError:
    """The worst error of one case. Raises `wrong_value` or `precision_downgrade` where it is beyond its bound."""
    worst = _worst(bench, outputs, expected, task)
    if not worst.ok:
        message = describe(worst, case.name, case.seed, expected.exact[worst.output].shape)
        raise ProgramFault(outcome_of(worst.errors), Rung.CORRECTNESS, message)
    return _case_error(worst, case)


def check_cases(
    bench: Workbench, session: Session, task: Task, size: str, cases: Iterable[Case]
) -> Iterator[CaseError]:
    """Runs every case, in thread orders and guard sides by turns. Raises ProgramFault at the first that fails."""
    for number, case in enumerate(cases):
        expected = bench.expected(task, size, case.name, case.seed)
        if not expected.usable:
            continue  # the reference itself overflows here, so the case asks for what nobody could avoid
        report = guarded_run(session, expected.inputs, PASSES[number % len(PASSES)], case.seed)
        if not _worst(bench, report.outputs, expected, task).ok:
            # The same input in another order tells a race from a plain mistake.
            again = guarded_run(session, expected.inputs, PASSES[(number + 1) % len(PASSES)], case.seed)
            if fault := disagreement(bench, report.outputs, again.outputs, expected, task):
                raise fault
        yield judge_case(bench, report.outputs, expected, task, case)
        del report, expected  # gigabytes, perhaps, that the next case needs


def _worst(bench: Workbench, outputs: Sequence[Array], expected: Expected, task: Task) -> Finding:
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


def _case_error(finding: Finding, case: Case) -> CaseError:
    """The measure that comes closer to its bound speaks for the case."""
    errors, bound = finding.errors, finding.bound
    if errors.norm_error * bound.element > errors.element_error * bound.norm:
        return CaseError(case=case.name, seed=case.seed, error=errors.norm_error, bound=bound.norm)
    return CaseError(case=case.name, seed=case.seed, error=errors.element_error, bound=bound.element)
