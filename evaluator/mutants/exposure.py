"""The search for an input that exposes a mutant: independent of the judge's cases, it compares with the original.

On each input the original and the mutants run in the same thread order. A mutant is exposed where it faults and the
original does not, or where all of this holds: an output differs from the original's by more than the judge's bound, the
mutant is beyond that bound of the exact values, and the original is within it. So no mutant counts as exposed on an
input on which the judge would be right to let it pass.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from evaluator import _core
from evaluator.devices import cpu
from evaluator.judge.bounds import Finding, bounds_of, measure
from evaluator.judge.expected import Expected
from evaluator.judge.oracle import Oracle
from evaluator.judge.seeds import derive as derive_seed
from evaluator.mutants.distributions import DISTRIBUTIONS, WHOLE, inputs
from evaluator.records import Limits, Outcome, ProgramFault
from evaluator.tasks.task import Task

DRAWS = 200
ORDERS = ("forward", "reverse", "random")
Outputs = tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True)
class Exposure:
    """The input that told a mutant from its original."""

    distribution: str
    draw: int  # which of the draws, from 0
    order: str  # of threads
    how: str  # `value`, or the fault that the mutant alone showed
    error: float | None  # for a value: its error over the judge's bound, at least 1


@dataclasses.dataclass(frozen=True)
class Draw:
    """One input of the search."""

    number: int
    distribution: str
    order: str
    guard: str
    seed: int


def draws(task: Task, seed: int, count: int = DRAWS) -> Iterator[Draw]:
    """The inputs of a search: distributions, thread orders and sides of the guard pages by turns."""
    names = list(DISTRIBUTIONS)
    for number in range(count):
        yield Draw(
            number=number,
            distribution=names[number % len(names)],
            order=ORDERS[number % len(ORDERS)],
            guard=("right", "left")[number // len(names) % 2],
            seed=derive_seed(seed, "mutants", task.id, number),
        )


class Search:
    """Looks for exposing inputs on the emulator. `oracle` gives exact values and bounds where outputs differ."""

    def __init__(self, oracle: Oracle, limits: Limits, seed: int, count: int = DRAWS):
        self._oracle = oracle
        self._limits = limits
        self._seed = seed
        self._count = count

    def expose(
        self, task: Task, size: str, original: cpu.CompiledPlan, mutants: Sequence[cpu.CompiledPlan]
    ) -> list[Exposure | None]:
        """For each mutant the first input that exposes it, or None. RuntimeError where the original itself faults."""
        found: list[Exposure | None] = [None] * len(mutants)
        with contextlib.ExitStack() as stack:
            sound = stack.enter_context(cpu.Session(original, self._limits))
            running: dict[int, cpu.Session] = {}
            for number, mutant in enumerate(mutants):
                try:
                    running[number] = stack.enter_context(cpu.Session(mutant, self._limits))
                except ProgramFault as error:
                    found[number] = Exposure("none", 0, "none", str(error.fault.outcome), None)
            for draw in draws(task, self._seed, self._count):
                if not running:
                    break
                for number, exposure in self._on_one_input(task, size, draw, sound, running).items():
                    found[number] = exposure
                    running.pop(number).close()
        return found

    def _on_one_input(
        self, task: Task, size: str, draw: Draw, original: cpu.Session, running: dict[int, cpu.Session]
    ) -> dict[int, Exposure]:
        given = inputs(task, size, draw.distribution, draw.seed)
        right, fault = _outputs(original, given, draw)
        if fault is not None:
            raise RuntimeError(f"the original faults on {draw}: {fault}")
        expected: Expected | None = None
        exposed = {}
        for number, session in running.items():
            seen, fault = _outputs(session, given, draw)
            if fault is not None:
                exposed[number] = Exposure(draw.distribution, draw.number, draw.order, str(fault), None)
            elif not all(_same_bits(one, two) for one, two in zip(seen, right, strict=True)):
                if expected is None:
                    expected = self._oracle.answer(task, size, given, integral=draw.distribution == WHOLE)
                error = excess(task, expected, right, seen)
                if error is not None:
                    exposed[number] = Exposure(draw.distribution, draw.number, draw.order, "value", error)
        return exposed


def excess(task: Task, expected: Expected, right: Outputs, seen: Outputs) -> float | None:
    """Error of a mutant's outputs over the judge's bound, where they are at fault by the rule above; else None."""
    if not expected.usable:
        return None  # the reference itself overflows here, so the input asks for what nobody could avoid
    theirs = measure(right, expected, task.family, task.precision)
    if not all(finding.ok for finding in theirs):
        return None
    ours = measure(seen, expected, task.family, task.precision)
    bounds = bounds_of(expected, task.family, task.precision)
    for number, (finding, bound) in enumerate(zip(ours, bounds, strict=True)):
        apart = Finding(number, _core.compare(seen[number], right[number].astype(np.float64)), bound)
        if not finding.ok and not apart.ok:
            return finding.excess
    return None


def _outputs(session: cpu.Session, given: Sequence[np.ndarray], draw: Draw) -> tuple[Outputs, Outcome | None]:
    """Outputs of one run, and the fault that it showed."""
    try:
        report = session.run(given, order=draw.order, seed=draw.number, guard=draw.guard)
    except ProgramFault as error:
        return (), error.fault.outcome
    if any(report.unwritten):
        return report.outputs, Outcome.UNWRITTEN_OUTPUT
    if report.modified:
        return report.outputs, Outcome.MODIFIED_INPUT
    return report.outputs, Outcome.STATEFUL if report.state_changed else None


def _same_bits(one: np.ndarray, two: np.ndarray) -> bool:
    return bool(np.array_equal(one.reshape(-1).view(np.uint8), two.reshape(-1).view(np.uint8)))
