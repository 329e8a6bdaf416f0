"""What a check has found so far, and the verdict made of it when the check ends."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

from evaluator.records import (
    EVALUATOR_VERSION,
    CaseError,
    Fault,
    Interval,
    Mode,
    Outcome,
    ProgramFault,
    Rung,
    Verdict,
    Work,
)

MOST_CHARACTERS = 2_000  # of a message


@dataclasses.dataclass
class Findings:
    """Filled by the rungs in order; what a program fell on leaves the rest empty."""

    task: str
    size: str
    device: str
    mode: Mode
    device_name: str = ""
    program_sha256: str = ""
    seeds: list[int] = dataclasses.field(default_factory=list)
    errors: list[CaseError] = dataclasses.field(default_factory=list)
    times: dict[str, Interval] = dataclasses.field(default_factory=dict)
    speedups: dict[str, Interval] = dataclasses.field(default_factory=dict)
    speedup: float | None = None
    own_kernel_share: float | None = None
    peak_bytes: int | None = None
    floor_us: float | None = None
    work: Work | None = None
    compiler: dict[str, int | None] = dataclasses.field(default_factory=dict)
    rung_ms: dict[str, float] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)  # what a reader of an `ok` verdict should know
    current: Rung = Rung.EXTRACT

    @contextlib.contextmanager
    def rung(self, rung: Rung) -> Iterator[None]:
        """Times one rung. A time-out belongs to the rung it happened on; other faults know their own."""
        self.current = rung
        began = time.perf_counter()
        try:
            yield
        except ProgramFault as error:
            if error.fault.outcome is not Outcome.TIMEOUT:
                raise
            raise ProgramFault(Outcome.TIMEOUT, rung, error.fault.message, error.fault.line) from error
        finally:
            self.rung_ms[rung] = self.rung_ms.get(rung, 0.0) + (time.perf_counter() - began) * 1e3

    def verdict(self, fault: Fault | None) -> Verdict:
        """The record of this check; `fault` None means ok."""
        return Verdict(
            outcome=Outcome.OK if fault is None else fault.outcome,
            rung=None if fault is None else fault.rung,
            message="; ".join(self.notes) if fault is None else shown(fault.message),
            line=None if fault is None else fault.line,
            task=self.task,
            size=self.size,
            device=self.device,
            device_name=self.device_name,
            mode=self.mode,
            program_sha256=self.program_sha256,
            evaluator_version=EVALUATOR_VERSION,
            seeds=tuple(self.seeds),
            errors=tuple(self.errors),
            times=dict(self.times),
            speedups=dict(self.speedups),
            # A faulty program has times at most, never a score.
            speedup=self.speedup if fault is None else None,
            own_kernel_share=self.own_kernel_share,
            peak_bytes=self.peak_bytes,
            floor_us=self.floor_us,
            work=self.work if "program" in self.times else None,
            compiler=dict(self.compiler),
            rung_ms={name: round(ms, 3) for name, ms in self.rung_ms.items()},
        )


def shown(message: str) -> str:
    """A message as it may be printed, stored and shown to a policy: names and lines in it are the program's choice."""
    if len(message) > MOST_CHARACTERS:
        message = message[: MOST_CHARACTERS - 3] + "..."
    return "".join(c if c.isprintable() or c == "\n" else " " for c in message)
