"""Recheck: timed launches must have computed, and a score that stands out must show again in new sessions."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from evaluator.judge.expected import Expected
from evaluator.judge.memory_safety import likeness, right
from evaluator.judge.workbench import Session, Workbench
from evaluator.records import Interval, Outcome, ProgramFault, Rung
from evaluator.tasks.task import Task

LARGE_SPEEDUP = 3.0
RECORD_FACTOR = 2.0
AGREEMENT = 0.10
KEPT_REPLAYS = 8  # in a row, with all that earlier ones left
CASE_REPLAYS = 2  # of a hidden case: whether it is right, and whether it takes as long
SLOWER = 1.25  # times as long as on the task's own draws: the work depends on the contents


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Around timed replays: one that leaves elements unwritten, though untimed runs wrote all, did not compute."""
    try:
        yield
    except ProgramFault as error:
        if error.fault.outcome is not Outcome.UNWRITTEN_OUTPUT:
            raise
        raise _wrong(error.fault.message) from error


def check_timed_outputs(bench: Workbench, sessions: Sequence[Session], timed: Expected, task: Task) -> None:
    """What timed launches left. Raises `wrong_after_timing`."""
    alike = likeness(bench, timed, task)
    if not all(right(bench, session.outputs(alike), timed, task) for session in dict.fromkeys(sessions)):
        raise _wrong("the outputs that timed launches left are wrong, though untimed runs on the same input were right")


def check_fresh_contents(
    bench: Workbench, session: Session, fresh: Expected, task: Task, replays: int = KEPT_REPLAYS
) -> float:
    """Replays a timed session on contents that were never seen. Raises `wrong_after_timing`.

    Returns microseconds per replay.
    """
    session.refill(list(fresh.inputs))
    with computing():
        taken_us = session.time(replays, forget=False)
    if not right(bench, session.outputs(likeness(bench, fresh, task)), fresh, task):
        raise _wrong("right after timing, fresh contents at the same addresses gave a wrong output")
    return taken_us


def stands_out(speedup: Interval, record: float | None) -> bool:
    """Whether a speed-up is large enough to be measured again: above 3, or above twice the task's record."""
    return speedup.value > LARGE_SPEEDUP or (record is not None and speedup.value > RECORD_FACTOR * record)


def check_reproduced(first: Interval, measured_again: Iterable[Interval]) -> Interval:
    """The lower of a speed-up and of one measured again, which must not be lower by more than 10 %.

    `measured_again` yields measurements in new sessions, lazily. A second one is taken where the first fell short,
    since other load can spoil one; a higher one takes nothing from what is claimed. Raises `not_reproduced`.
    """
    seen = [first]
    for again in measured_again:
        seen.append(again)
        if again.value >= (1 - AGREEMENT) * first.value:
            return min(first, again, key=lambda interval: interval.value)
    values = ", ".join(f"{interval.value:.2f}" for interval in seen)
    raise ProgramFault(
        Outcome.NOT_REPRODUCED,
        Rung.RECHECK,
        f"speed-ups of {values} in as many measurements; a score this large must show again within {AGREEMENT:.0%}",
    )


def _wrong(message: str) -> ProgramFault:
    return ProgramFault(Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, message)
