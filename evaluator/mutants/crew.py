"""Worker processes that try batches of mutants; records are handed out as they come."""

import collections
import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection

from evaluator.judge.child import Child, ending
from evaluator.mutants import trying_process
from evaluator.mutants.trial import Original, Settings, Trial
from evaluator.mutants.trying_process import Batch

SECONDS_A_MUTANT = 120.0  # far beyond 200 runs of the slowest allowed: a worker that takes longer hangs


@dataclasses.dataclass(frozen=True)
class Failure:
    """A batch that came to no end through a fault of ours. What it gave before stands."""

    batch: Batch
    message: str


@dataclasses.dataclass
class _Worker:
    child: Child
    batch: Batch | None = None
    deadline_s: float = 0.0  # on the monotonic clock


class Crew:
    """`workers` processes. A context manager; a worker that is lost is replaced, and its batch is a `Failure`."""

    def __init__(
        self,
        workers: int,
        settings: Settings,
        process_main: Callable[[connection.Connection], None] = trying_process.main,
    ):
        self._settings = settings
        self._process_main = process_main
        self._workers = [self._hire() for _ in range(workers)]

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.child.end(patience_s=0.0 if worker.batch else 2.0)

    def records(self, batches: Sequence[Batch], until_s: float = math.inf) -> Iterator[Original | Trial | Failure]:
        """What the workers find, in the order in which it comes. None is begun after `until_s` (monotonic clock)."""
        waiting = collections.deque(batches)
        while waiting or any(worker.batch for worker in self._workers):
            if time.monotonic() >= until_s:
                waiting.clear()
            for worker in self._workers:
                if worker.batch is None and waiting:
                    _give(worker, waiting.popleft())
            if any(worker.batch for worker in self._workers):
                yield from self._collect()

    def _collect(self) -> Iterator[Original | Trial | Failure]:
        busy = [worker for worker in self._workers if worker.batch is not None]
        patience_s = max(0.0, min(worker.deadline_s for worker in busy) - time.monotonic())
        ready = connection.wait([worker.child.pipe for worker in busy], timeout=patience_s)
        for worker in busy:
            assert worker.batch is not None
            if worker.child.pipe in ready:
                try:
                    record = worker.child.pipe.recv()
                except (EOFError, OSError):
                    yield self._lose(worker, "its worker died")
                    continue
                if isinstance(record, Original | Trial):
                    yield record
                    continue
                if record is not None:
                    yield Failure(worker.batch, record)
                worker.batch = None
            elif time.monotonic() >= worker.deadline_s:
                yield self._lose(worker, f"no end within {SECONDS_A_MUTANT:.0f} s a mutant")

    def _hire(self) -> _Worker:
        child = Child(self._process_main)
        child.pipe.send(self._settings)
        return _Worker(child)

    def _lose(self, worker: _Worker, reason: str) -> Failure:
        assert worker.batch is not None
        failure = Failure(worker.batch, f"{reason} ({ending(worker.child.end())})")
        self._workers[self._workers.index(worker)] = self._hire()
        return failure


def _give(worker: _Worker, batch: Batch) -> None:
    worker.batch = batch
    worker.deadline_s = time.monotonic() + SECONDS_A_MUTANT * (1 + len(batch.mutants))
    with contextlib.suppress(OSError):  # it died idle: the next look at its pipe says so
        worker.child.pipe.send(batch)
