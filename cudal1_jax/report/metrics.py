"""Metrics of a run: JSON lines are the record, TensorBoard events a view of it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tensorboardX import SummaryWriter

from evaluator.whole_file import write_whole


class MetricsLog:
    """Appends one line per iteration to `metrics.jsonl` and the same numbers to TensorBoard; a context manager."""

    def __init__(self, path: Path, rows: Sequence[Mapping[str, Any]]):
        """Begin after `rows`, the iterations done so far; lines of iterations to be done again are taken back."""
        self._path = path
        write_whole(path, map(_line, rows))
        next_step = rows[-1]["step"] + 1 if rows else 0
        self._events = SummaryWriter(logdir=str(path.parent), purge_step=next_step, write_to_disk=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.close()

    def append(self, row: Mapping[str, Any]) -> None:
        """Add the metrics of one iteration; `row["step"]` numbers it."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(row))
        for name, value in _numbers(row):
            self._events.add_scalar(name, value, row["step"])
        self._events.flush()


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row) + "\n"


def _numbers(row: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for name, value in row.items():
        if name != "step" and isinstance(value, int | float):
            yield name, float(value)
