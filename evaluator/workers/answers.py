"""What a worker says: that it is ready, that one of its jobs waits or goes on, and verdicts."""

import dataclasses

from evaluator.records import Verdict


@dataclasses.dataclass(frozen=True)
class Ready:
    """The first answer."""

    device_name: str  # model of its device
    capacity: int  # jobs that it can hold at once


@dataclasses.dataclass(frozen=True)
class Paused:
    """A job waits for others of the same worker, or goes on."""

    number: int  # of the job
    waits: bool
    worked_s: float  # how long it was worked on until now: its deadline is about this time


@dataclasses.dataclass(frozen=True)
class Judged:
    """The last answer about a job."""

    number: int
    verdict: Verdict


Answer = Ready | Paused | Judged
