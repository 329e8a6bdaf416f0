"""A run's folder: where everything it makes lies, who may write there, and whether a command may continue it."""

import dataclasses
import fcntl
import json
from pathlib import Path
from typing import Any, Self

from evaluator.whole_file import write_whole


class RunError(Exception):
    """The run cannot begin or go on as asked; the text says what to do."""


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """Paths of one run under `runs/<name>/`."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def store(self) -> Path:
        return self.path / "store.sqlite"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def programs(self) -> Path:
        return self.path / "programs"

    @property
    def adapter(self) -> Path:
        return self.path / "adapter"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    def is_finished(self) -> bool:
        """Whether the run has written its summary, which it does last."""
        return self.summary.exists()


# What may change between two calls of one run: how long it goes on and who works for it, not what it does.
CHANGEABLE = frozenset(
    {"iterations", "stop_after_s", "reserve_s", "profile", "judge.workers", "judge.deadline_s"}
    | {"pool.kind", "pool.address", "pool.key_file", "pool.cpus"}
)


def set_aside(path: Path) -> Path | None:
    """Move an earlier run out of the way (`name.1`, `name.2`, ...); its new place, or None where there was none."""
    if not path.exists():
        return None
    number = 1
    while (target := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    path.rename(target)
    return target


def open_run(path: Path, config: dict[str, Any]) -> RunDirectory:
    """The folder of a run that begins, or goes on; only CHANGEABLE keys may differ. RunError: others do."""
    directory = RunDirectory(path)
    path.mkdir(parents=True, exist_ok=True)
    if directory.config.exists():
        _refuse_changes(directory, config)
    write_whole(directory.config, [json.dumps(config, indent=2), "\n"])
    return directory


def _refuse_changes(directory: RunDirectory, config: dict[str, Any]) -> None:
    try:
        recorded = json.loads(directory.config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(
            f"{directory.config} is not readable JSON ({error}): put back a copy of it, or begin again with --fresh"
        ) from error
    before, now = flatten(recorded), flatten(json.loads(json.dumps(config)))
    keys = [key for key in sorted(before.keys() | now.keys()) if not _may_change(key)]
    changed = [key for key in keys if before.get(key, ...) != now.get(key, ...)]
    if changed:
        lines = [f"  {key}: {before.get(key, 'absent')!r} -> {now.get(key, 'absent')!r}" for key in changed]
        raise RunError(
            f"run {directory.path.name!r} began with another config, which differs in\n"
            + "\n".join(lines)
            + "\ngive the config it began with, another --run, or --fresh to set that run aside and begin again"
        )


def _may_change(key: str) -> bool:
    """Whether a dotted key, perhaps of a stage within a pipeline, is among CHANGEABLE."""
    return any(key == name or key.endswith(f".{name}") for name in CHANGEABLE)


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dicts as one dict with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


class RunLock:
    """Keeps two processes from working on one run; the kernel lets go of it when the holder dies."""

    def __init__(self, path: Path):
        self._file = (path / ".lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise RunError(
                f"another process works on run {path.name!r}: wait for it to end, or choose another --run"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._file.close()
