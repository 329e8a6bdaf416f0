"""What the ladder asks of a device: expected values, sessions of a program, things to time it against.

`cpu_workbench` and `cuda_workbench` are the two there are. Arrays are NumPy's on one and CuPy's on the other, and the
rungs hand them around without looking inside.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from evaluator.judge.accuracy import Array, Comparison
from evaluator.judge.expected import Expected
from evaluator.judge.job import Job
from evaluator.judge.timing import Timed
from evaluator.tasks.task import Task

CompiledPlan = Any  # the device's own: a plan and what executes it

Alike = Callable[[Sequence[Array], Sequence[Array]], bool]
"""(results, other results of the same inputs) -> whether they agree"""


class RunReport(Protocol):
    """What one judged run did."""

    @property
    def outputs(self) -> Sequence[Array]: ...
    @property
    def unwritten(self) -> Sequence[int]: ...
    @property
    def modified(self) -> Sequence[str]: ...
    @property
    def state_changed(self) -> bool: ...
    @property
    def peak_bytes(self) -> int: ...


class Session(Timed, Protocol):
    """One compiled plan, run and replayed on arrays that the caller gives."""

    def run(self, inputs: Sequence[Array], order: str, seed: int, guard: str) -> RunReport: ...
    def refill(self, inputs: Sequence[Array]) -> None: ...
    def time(self, replays: int, *, forget: bool = True) -> float: ...
    def step_us(self) -> Sequence[float] | None:
        """Microseconds of each step of the plan, or None where the device cannot tell."""
        ...

    def outputs(self, alike: Alike) -> Sequence[Array]:
        """The outputs for the inputs as given; `alike` compares replays with judged runs of the same contents."""
        ...


@dataclasses.dataclass(frozen=True)
class Reference:
    """A baseline that runs."""

    identity: str  # what derived clocks know it by
    sessions: Sequence[Timed]  # one for each bucket of times


class Workbench(Protocol):
    """One device, for one program at a time. Compiled plans are the device's own."""

    widest: float | None  # half width of a speed-up's interval over its value beyond which timing is unstable

    def expected(self, task: Task, size: str, case: str, seed: int, *, once: bool = False) -> Expected:
        """Inputs and exact outputs of a case, on the device. `once`: nobody will ask for this draw again."""
        ...

    def compare(self, seen: Array, exact: Array, scale: float = 0.0) -> Comparison:
        """Errors of an output against exact values, or against another result in the output's own dtype.

        `scale` as of `expected.Compare`.
        """
        ...

    def open(self, compiled: CompiledPlan) -> contextlib.AbstractContextManager[Session]:
        """A session in the state in which a new process would find it."""
        ...

    def without(self, compiled: CompiledPlan, step: int) -> CompiledPlan:
        """The plan with one step left out."""
        ...

    def open_timed(self, stack: contextlib.ExitStack, compiled: CompiledPlan, inputs: Expected) -> Sequence[Session]:
        """Sessions of one program, run once on `inputs`, one for each bucket of times. `stack` owns them."""
        ...

    def references(self, job: Job, inputs: Expected, plain: CompiledPlan | None) -> Mapping[str, Reference]:
        """What the job's program is timed against, by the baseline's name, last run on `inputs`.

        `plain`: the job's own baseline, where this device wants it compiled beforehand.
        """
        ...

    def floor_us(self, job: Job, inputs: Expected) -> float | None:
        """The least time in which the device can move the bytes; None where there is no such bound."""
        ...

    def survived(self) -> bool:
        """Whether the device works on after a fault: a program may have broken the context of a GPU."""
        ...

    def disturbances(self) -> list[str]:
        """What held the device back just now, a line each: times taken meanwhile say less."""
        ...

    def forget_references(self) -> None:
        """Gives up the references, one of which may be broken."""
        ...
