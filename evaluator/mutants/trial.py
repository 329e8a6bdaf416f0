"""Tries mutants of one program: what compiles, what some input exposes, what the judge says."""

import dataclasses
import enum
import time
from collections.abc import Iterator, Sequence

from evaluator.devices import cpu
from evaluator.judge.ladder import Judge
from evaluator.judge.oracle import Oracle
from evaluator.mutants.derive import Mutant
from evaluator.mutants.distributions import OWN, inputs
from evaluator.mutants.exposure import Exposure, Search
from evaluator.mutants.machine_code import fingerprint
from evaluator.program.identity import sha256
from evaluator.program.screen import screen
from evaluator.program.trace import Tracer
from evaluator.records import Limits, Outcome, ProgramFault
from evaluator.tasks.task import Task

KERNEL_S = 3.0  # CPU seconds of one run, search and judge alike: mutants loop for ever more often than programs
TIMED_RUNS = 3


class State(enum.StrEnum):
    """How far a mutant came."""

    REFUSED = "refused"  # fell before it ran: at the screen, the trace, the compiler or a launch check
    SAME_CODE = "same_code"  # the compiler made the same machine code of it: there is nothing to catch
    TRIED = "tried"  # ran in the search and was judged


@dataclasses.dataclass(frozen=True)
class Trial:
    """What came of one mutant; everything but its text."""

    id: str
    program: str
    task: str
    kind: str
    line: int
    before: str
    after: str
    state: State
    outcome: Outcome | None  # the judge's; what refused it; None for the same code
    message: str  # that goes with the outcome
    exposure: Exposure | None  # what the search found
    seconds: float  # wall time of its share

    @property
    def caught(self) -> bool:
        return self.state is State.TRIED and self.outcome is not Outcome.OK

    @property
    def exposed(self) -> bool:
        """By the search or by the judge: a mutant that is caught has been exposed by a case."""
        return self.exposure is not None or self.caught


@dataclasses.dataclass(frozen=True)
class Original:
    """A program whose mutants are to be tried."""

    program: str
    sha256: str
    run_ms: float | None  # CPU time of one run on the emulator, the least of a few
    fault: str | None  # what is wrong with it, so that its mutants say nothing


@dataclasses.dataclass(frozen=True)
class Settings:
    """What results depend on. Can be pickled."""

    device: str = "cpu"  # the judge's; the search runs on the emulator
    size: str = "cpu"
    mode: str = "quick"
    seed: int = 0
    draws: int = 200  # inputs of the search


class Trials:
    """Owns a judge, a tracer and an oracle for the search; use it in a `with`."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._limits = dataclasses.replace(Limits.for_device(settings.device), kernel_s=KERNEL_S)
        self._judge = Judge(settings.device, settings.mode, settings.seed, self._limits)
        self._oracle = Oracle()
        self._tracer = Tracer(self._limits)
        self._search = Search(self._oracle, self._limits, settings.seed, settings.draws)

    def __enter__(self) -> "Trials":
        return self

    def __exit__(self, *_: object) -> None:
        self._judge.close()
        self._tracer.close()
        self._oracle.close()

    def examine(self, name: str, text: str, task: Task) -> Original:
        """Runs a program a few times on the emulator."""
        try:
            compiled = self._compile(text, task)
            given = inputs(task, self.settings.size, OWN, self.settings.seed)
            with cpu.Session(compiled, self._limits) as session:
                run_ms = min(session.run(given).cpu_us for _ in range(TIMED_RUNS)) / 1e3
        except ProgramFault as error:
            return Original(name, sha256(text), None, f"{error.fault.outcome}: {error}")
        return Original(name, sha256(text), run_ms, None)

    def fault_of(self, text: str, task: Task) -> str | None:
        """What the judge finds in a program whose mutants are to be tried; None where it is right."""
        verdict = self._judge.check(text, task, self.settings.size, timing=False)
        return None if verdict.ok else f"{verdict.outcome}: {verdict.message}"

    def attempt(self, text: str, task: Task, mutants: Sequence[Mutant]) -> Iterator[Trial]:
        """One trial of each mutant of the program `text`, those that need no search first.

        RuntimeError at the end where the judge failed on some: these have no trial.
        """
        original = self._compile(text, task)
        unchanged, ready = fingerprint(original), []
        for mutant in mutants:
            started = time.perf_counter()
            try:
                compiled = self._compile(mutant.text, task)
            except ProgramFault as error:
                if error.fault.outcome is Outcome.EVALUATOR_ERROR:
                    raise
                yield _trial(mutant, State.REFUSED, started, error.fault.outcome, str(error))
                continue
            if fingerprint(compiled) == unchanged:
                yield _trial(mutant, State.SAME_CODE, started)
            else:
                ready.append((mutant, compiled, time.perf_counter() - started))
        started = time.perf_counter()
        found = self._search.expose(task, self.settings.size, original, [compiled for _, compiled, _ in ready])
        failed = []
        share_s = (time.perf_counter() - started) / max(1, len(ready))
        for (mutant, _, spent_s), exposure in zip(ready, found, strict=True):
            started = time.perf_counter() - share_s - spent_s
            verdict = self._judge.check(mutant.text, task, self.settings.size, timing=False)
            if verdict.outcome is Outcome.EVALUATOR_ERROR:
                failed.append(f"mutant {mutant.id}: {verdict.message}")
            else:
                yield _trial(mutant, State.TRIED, started, verdict.outcome, verdict.message, exposure)
        if failed:
            raise RuntimeError("the judge failed: " + "; ".join(failed))

    def _compile(self, text: str, task: Task) -> cpu.CompiledPlan:
        """For the emulator. ProgramFault for what falls before it runs."""
        screen(text, self._limits)
        arrays, outputs = task.arrays_at(self.settings.size), self._oracle.outputs(task, self.settings.size)
        given = [array for array in arrays if not array.parameter]
        plan = self._tracer.trace(text, given, outputs, [array for array in arrays if array.parameter])
        return cpu.compile(plan, self._limits)


def _trial(
    mutant: Mutant,
    state: State,
    started: float,
    outcome: Outcome | None = None,
    message: str = "",
    exposure: Exposure | None = None,
) -> Trial:
    kept = {name: value for name, value in vars(mutant).items() if name != "text"}
    seconds = time.perf_counter() - started
    return Trial(**kept, state=state, outcome=outcome, message=message, exposure=exposure, seconds=seconds)
