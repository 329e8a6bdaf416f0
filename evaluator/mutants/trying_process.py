"""What runs in one worker: tries mutants until its pipe closes."""

import dataclasses
from collections.abc import Iterator
from multiprocessing.connection import Connection

from evaluator.mutants.derive import Mutant
from evaluator.mutants.trial import Original, Settings, Trial, Trials
from evaluator.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class Batch:
    """What is asked of a worker: how long a program runs (no mutants), or the trials of some mutants of it."""

    program: str
    text: str
    task: Task
    mutants: tuple[Mutant, ...] = ()


def main(pipe: Connection) -> None:
    """Receives `Settings`, then batches. Answers each with records one by one, then None, or the text of a failure."""
    settings: Settings = pipe.recv()
    right: dict[str, str | None] = {}  # programs that were judged, and their faults
    with Trials(settings) as trials:
        while True:
            batch: Batch = pipe.recv()
            try:
                for record in _records(trials, batch, right):
                    pipe.send(record)
                pipe.send(None)
            except OSError:
                raise
            except Exception as error:  # ours: the others go on, and a later run tries these again
                pipe.send(f"{type(error).__name__}: {error}")


def _records(trials: Trials, batch: Batch, right: dict[str, str | None]) -> Iterator[Original | Trial]:
    if not batch.mutants:
        yield trials.examine(batch.program, batch.text, batch.task)
        return
    if batch.text not in right:
        right[batch.text] = trials.fault_of(batch.text, batch.task)
    fault = right[batch.text]
    if fault is not None:
        yield dataclasses.replace(trials.examine(batch.program, batch.text, batch.task), fault=fault)
        return
    yield from trials.attempt(batch.text, batch.task, batch.mutants)
