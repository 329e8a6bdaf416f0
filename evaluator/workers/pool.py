"""What every pool of judges offers, and a stream over one that takes in no more than it can judge."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Protocol

from evaluator.judge.job import Job
from evaluator.records import Verdict


class PoolError(Exception):
    """A pool cannot judge as asked: it is out of reach, of another version, or refuses. The text says what to do."""


class Pool(Protocol):
    """Judges jobs somewhere. Every job that was submitted has exactly one verdict, in the order in which they end."""

    @property
    def outstanding(self) -> int:
        """Jobs submitted whose verdicts have not been handed out."""

    @property
    def in_flight(self) -> int:
        """Jobs that keep every worker busy: more than these would only wait."""

    def submit(self, job: Job) -> None:
        """Queues a job and returns at once. `job.key` is handed back untouched and never leaves this process.

        KeyError: the task has no such size.
        """

    def completed(self) -> Iterator[tuple[Job, Verdict]]:
        """Jobs with their verdicts as they end, until nothing submitted is outstanding. PoolError: see there."""

    def close(self) -> None:
        """Ends the workers; what they held is dropped."""


def stream(pool: Pool, jobs: Iterable[Job]) -> Iterator[tuple[Job, Verdict]]:
    """Jobs with their verdicts as they end; `jobs` is read as room becomes free, never further.

    At most `pool.in_flight` jobs have been read whose verdicts were not handed out. The pool must have no other work.
    """
    waiting = iter(jobs)

    def fill() -> None:
        for job in itertools.islice(waiting, max(0, pool.in_flight - pool.outstanding)):
            pool.submit(job)

    fill()
    while pool.outstanding:
        for done in pool.completed():
            fill()
            yield done
