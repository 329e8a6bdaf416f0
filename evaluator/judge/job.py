"""A job: one program to be judged, and how."""

import dataclasses
from collections.abc import Hashable

from evaluator.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class Job:
    """Everything that a judge needs to know of one program; can be pickled."""

    key: Hashable  # handed back untouched, for example (step, sample)
    text: str  # the program, or a completion that holds one
    task: Task
    size: str = "cpu"
    completion: bool = False  # `text` is a completion: the program is in its one ```python fence
    seed: int | None = None  # draws of every case; None: the judge's own, whose expected values it keeps
    plain: str | None = None  # text of the baseline where `kernels/` has none; without either, no speed-up
    record: float | None = None  # the task's best speed-up so far: above twice that it is measured again
    timing: bool = True  # False: correctness alone
    cases: tuple[str, ...] | None = None  # correctness cases to try, None for all that the task allows
    deadline_s: float | None = None  # wall time until a pool replaces the worker that holds it; None: the pool's own
    device_name: str | None = None  # the only model of device whose verdict can be compared; None: whichever is free

    @property
    def workload(self) -> Hashable:
        """What it shares with other jobs: a device keeps the expected values and references of the last of these."""
        return self.task.id, self.size, self.seed
