"""One stored baseline: how long a library takes for a task's reference on one model of device, with its provenance."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from evaluator.tasks.task import Task
from evaluator.tasks.text import task_text

SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class Subject:
    """What a record is about. Equal subjects are measured once."""

    task: str  # task id
    task_sha256: str  # of the arrays at this size and the reference's text
    size: str
    device: str  # cpu or cuda
    device_name: str  # model, such as "NVIDIA H200"
    baseline: str  # name out of `kinds.BASELINES`
    precision: str  # class at which the library computed: the task's
    versions: Mapping[str, str]  # of all that the time depends on: libraries, driver, this package

    @property
    def key(self) -> tuple:
        fields = {**vars(self), "versions": tuple(sorted(self.versions.items()))}
        return tuple(fields.values())


@dataclasses.dataclass(frozen=True)
class Record:
    """A time with its 99 % interval, or why there is none."""

    subject: Subject
    date: str  # UTC, ISO 8601
    median_us: float | None = None  # median of seven bucket means of single calls
    low_us: float | None = None
    high_us: float | None = None
    samples: int = 0  # calls that were timed
    clock: str = ""  # "events" on the device, or "host" around a call and the wait for its outputs
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


def task_sha256(task: Task, size: str) -> str:
    """Changes with the reference's text and its arrays' names, shapes and dtypes."""
    return hashlib.sha256(task_text(task, size).encode()).hexdigest()


def to_json(record: Record) -> str:
    """One line, with the fields of the subject beside the others."""
    fields = vars(record) | {"subject": None}
    del fields["subject"]
    return json.dumps({"schema": SCHEMA, **vars(record.subject), **fields}, allow_nan=False)


def from_json(text: str) -> Record:
    """The record that `to_json` wrote. ValueError, naming what is wrong, for anything else."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ValueError(f"not a record of a baseline: {error}") from error
    if not isinstance(fields, dict) or fields.pop("schema", None) != SCHEMA:
        raise ValueError(f"not a record of a baseline of schema {SCHEMA}; measure it again")
    own = {field.name: fields.pop(field.name) for field in dataclasses.fields(Record) if field.name in fields}
    try:
        record = Record(subject=Subject(**fields), **own)
    except TypeError as error:
        raise ValueError(f"not a record of a baseline: {error}") from error
    _require_types(record)
    return record


def _require_types(record: Record) -> None:
    texts = [value for name, value in vars(record.subject).items() if name != "versions"]
    if not all(isinstance(text, str) for text in (*texts, record.date, record.clock)):
        raise ValueError("not a record of a baseline: task, device, date and clock are texts")
    if not isinstance(record.subject.versions, dict) or not isinstance(record.error, str | None):
        raise ValueError("not a record of a baseline: versions are an object, error is a text or null")
    times = (record.low_us, record.median_us, record.high_us)
    if record.ok and not (all(map(_is_time, times)) and sorted(times) == list(times)):  # type: ignore[type-var]
        raise ValueError(f"not a record of a baseline: low, median and high are {times}, expected times in order")


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < float("inf")
