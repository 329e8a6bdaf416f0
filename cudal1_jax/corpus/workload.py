"""A generated task with the programs that can be written for it."""

import dataclasses
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus.program import Program
from evaluator.tasks.task import Array, Task

Writer = Callable[[Random], Program]
SIZE = "cpu"

# Correctness cases of tasks with steps after a sum. Inputs a thousand times larger are left out: sums that cancel
# and a step that saturates after them show the rounding of any program.
AFTER_A_SUM = ("negated", "one_changed", "structured", "shifted", "permuted", "small", "integers")


@dataclasses.dataclass(frozen=True)
class Workload:
    """One task of the corpus. `writers[0]` is its plain program; every writer draws its own free choices."""

    task: Task
    canonical: tuple[str, ...]  # step list without constants, names and extents
    bottleneck: str  # what bounds the time of the task, a sentence
    writers: tuple[Writer, ...]

    @property
    def family(self) -> str:
        return self.task.family

    @property
    def key(self) -> str:
        return " ".join((self.family, *self.canonical))


def cases_after_sum(steps: int) -> tuple[str, ...] | None:
    """Correctness cases of a task with `steps` steps after its sums; None for all."""
    return AFTER_A_SUM if steps else None


def task(family: str, source: str, arrays: tuple[Array, ...], cases: tuple[str, ...] | None = None) -> Task:
    """A task record without an id; the corpus gives it one when it has its place."""
    return Task(id="", name=family, family=family, source=source, sizes={SIZE: arrays}, cases=cases)
