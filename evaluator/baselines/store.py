"""Records on disk, a line of JSON each. What a run that was killed had written is there for the next one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from evaluator.baselines.record import Record, Subject, from_json, task_sha256, to_json
from evaluator.tasks.task import Task


class WrongFile(Exception):
    """The file holds something else, or cannot be read; the text says what to do."""


class Store:
    """Records by what they are about, kept in a file where there is one. A context manager.

    The newest of equal subjects counts.
    """

    def __init__(self, path: Path | None = None):
        """Reads what `path` holds; a last line that is cut off goes away. WrongFile where that is no store."""
        self._records: dict[tuple, Record] = {}
        self._file = None
        if path is None:
            return
        try:
            found, kept = _read(path) if path.exists() else ([], 0)
            self._file = path.open("ab")
            self._file.truncate(kept)
        except OSError as error:
            raise WrongFile(f"cannot use {path}: {error.strerror}; name another file") from error
        self._records = {record.subject.key: record for record in found}

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def find(self, subject: Subject) -> Record | None:
        """What is known of exactly this subject."""
        return self._records.get(subject.key)

    def add(self, record: Record) -> None:
        """Keeps one record, on disk at once."""
        self._records[record.subject.key] = record
        if self._file is not None:
            self._file.write(to_json(record).encode() + b"\n")
            self._file.flush()


def read(path: Path) -> list[Record]:
    """The newest record of each subject that a store holds. WrongFile where there is no such file or it is no store."""
    try:
        found, _ = _read(path)
    except OSError as error:
        raise WrongFile(f"cannot read {path}: {error.strerror}; `python -m evaluator baselines` makes it") from error
    return list({record.subject.key: record for record in found}.values())


def current(records: Sequence[Record], tasks: Mapping[str, Task]) -> list[Record]:
    """Those of tasks as they are now: of the same text and arrays, at the task's own precision class."""
    return [record for record in records if _is_current(record.subject, tasks.get(record.subject.task))]


def _is_current(about: Subject, task: Task | None) -> bool:
    if task is None or about.size not in task.sizes or about.precision != task.precision:
        return False
    return about.task_sha256 == task_sha256(task, about.size)


def _read(path: Path) -> tuple[list[Record], int]:
    """Whole lines, and their length in bytes."""
    data = path.read_bytes()
    kept = data.rfind(b"\n") + 1
    records = []
    for number, line in enumerate(data[:kept].splitlines(), 1):
        try:
            records.append(from_json(line.decode()))
        except ValueError as error:
            raise WrongFile(f"{path}, line {number}: {error}") from error
    if kept == 0 and data and not data.startswith(b"{"):
        raise WrongFile(f"{path} holds no records of baselines; name another file")
    return records, kept
