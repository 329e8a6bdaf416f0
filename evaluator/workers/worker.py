"""What a pool asks of a worker, whether it is a process on this machine or an actor on another."""

from collections.abc import Mapping
from typing import Any, Protocol

from evaluator.judge.job import Job
from evaluator.workers.answers import Answer


class Lost(Exception):
    """A worker is gone, and with it whatever it was doing."""


class Worker(Protocol):
    """A judge in a process of its own, somewhere. It answers `Ready`, then about its jobs, in any order."""

    def begin(self, number: int, options: Mapping[str, Any], job: Job) -> None:
        """Hands over a job, without its key, and returns at once. Lost: it was gone before."""

    def receive(self) -> Answer:
        """The next answer, which is there. Lost: there will be none."""

    def end(self, *, patience_s: float) -> str:
        """Ends it, by force after `patience_s`, and says how it ended."""
