"""A place for a worker, and the jobs that wait for one or that a worker holds."""

import dataclasses
import time
from collections.abc import Hashable, Mapping
from typing import Any

from evaluator.judge.job import Job
from evaluator.workers.worker import Worker


@dataclasses.dataclass(eq=False)
class QueuedJob:
    """A job that has no verdict yet."""

    job: Job
    options: Mapping[str, Any]
    losses: int = 0  # workers that were lost while they held it alone, or that it kept too long
    suspect: bool = False  # a worker was lost while it held this job: the next one gets no other beside it
    refusals: int = 0  # workers that were found dead when it came to them
    stranded_s: float | None = None  # since when no worker may take it, on the monotonic clock
    overtaken: int = 0  # jobs that came later and went before it


@dataclasses.dataclass(eq=False)
class Held:
    """A job that a worker has."""

    queued: QueuedJob
    given_s: float  # how long it may be worked on in all
    until_s: float | None  # when that is over, on the monotonic clock; None: it waits for others


@dataclasses.dataclass(eq=False)
class Slot:
    """A place of the pool and the worker in it, with what that one holds."""

    place: int
    worker: Worker
    capacity: int  # jobs that it can hold
    device_name: str | None = None  # None: it is starting
    held: dict[int, Held] = dataclasses.field(default_factory=dict)  # by number, in the order in which they were given
    workload: Hashable = None  # of the last job that it was given
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of that job, as of all that it holds

    @property
    def has_room(self) -> bool:
        """Whether it can be given one more. A suspect is alone."""
        alone = any(held.queued.suspect for held in self.held.values())
        return self.device_name is not None and len(self.held) < self.capacity and not alone

    @property
    def until_s(self) -> float | None:
        """When the first of its jobs must have ended."""
        return min((held.until_s for held in self.held.values() if held.until_s is not None), default=None)

    def take(self, number: int, queued: QueuedJob, given_s: float) -> None:
        """Holds one job more, whose time begins now."""
        self.held[number] = Held(queued, given_s, time.monotonic() + given_s)
        self.workload, self.options = queued.job.workload, queued.options

    def latest(self) -> int:
        """Number of the job that must have ended first."""
        ends = {number: held.until_s for number, held in self.held.items() if held.until_s is not None}
        return min(ends, key=lambda number: ends[number])
