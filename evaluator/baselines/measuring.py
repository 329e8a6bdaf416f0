"""Measures baselines, each in a process of its own, whatever becomes of that process."""

import datetime

from evaluator.baselines import kinds, measuring_process
from evaluator.baselines.measuring_process import Answer, Request
from evaluator.baselines.record import Record, Subject, task_sha256
from evaluator.baselines.sampling import Effort
from evaluator.devices import device_model
from evaluator.judge.child import Child, ending
from evaluator.judge.expected import Expected
from evaluator.judge.oracle import Oracle, OracleError
from evaluator.tasks.task import Task

SEED = 0  # of the inputs: those of every baseline of a task are the same
_CLASSES = ("fp32", "tf32")
_ENDING_S = 5.0  # for a process that is lost already to have an exit code


class Measurer:
    """Baselines at one size on one device. A context manager."""

    def __init__(self, device: str, size: str, effort: Effort, deadline_s: float):
        """`deadline_s`: of one baseline, compilation and comparison included."""
        self._device, self._size, self._effort, self._deadline_s = device, size, effort, deadline_s
        self._oracle = Oracle(deadline_s=deadline_s)  # of `cpu`; on `cuda` expected values never leave the device

    def __enter__(self) -> "Measurer":
        return self

    def __exit__(self, *_: object) -> None:
        self._oracle.close()

    def subject(self, task: Task, baseline: str) -> Subject:
        """What a measurement now would be about."""
        return Subject(
            task=task.id,
            task_sha256=task_sha256(task, self._size),
            size=self._size,
            device=self._device,
            device_name=device_model.name(self._device),
            baseline=baseline,
            precision=task.precision,
            versions=kinds.versions(baseline, self._device),
        )

    def measure(self, task: Task, baseline: str) -> Record:
        """One record. What goes wrong, a lost process and a passed deadline included, is its `error`."""
        answer = self._answer(task, baseline)
        subject, date = self.subject(task, baseline), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        if answer.sampled is None:
            return Record(subject=subject, date=date, error=answer.error)
        return Record(subject=subject, date=date, clock=answer.clock, **vars(answer.sampled))

    def _answer(self, task: Task, baseline: str) -> Answer:
        if task.precision not in _CLASSES:
            return Answer(
                None, "", f"no library is set to class {task.precision} here; {' and '.join(_CLASSES)} are known"
            )
        expected: Expected | None = None
        if self._device == "cpu":
            try:
                expected = self._oracle.expected(task, self._size, "plain", SEED)
            except OracleError as error:
                return Answer(None, "", str(error))
        return ask(Request(baseline, task, self._size, self._device, SEED, self._effort, expected), self._deadline_s)


def ask(request: Request, deadline_s: float) -> Answer:
    """What a process of its own answers, or how that process ended without one."""
    child = Child(measuring_process.main)
    try:
        child.pipe.send(request)
        if not child.pipe.poll(deadline_s):
            return Answer(None, "", f"no time after {deadline_s:g} s; --deadline=SECONDS allows more")
        return child.pipe.recv()
    except (EOFError, OSError):
        return Answer(None, "", f"its process was lost: {ending(child.end(_ENDING_S))}")
    finally:
        child.end()
