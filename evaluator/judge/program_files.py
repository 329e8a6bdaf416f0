"""Which files the programs of a folder are."""

from collections.abc import Iterable
from pathlib import Path

from evaluator.judge.ending import WrongUse


def find(paths: Iterable[Path]) -> list[Path]:
    """Programs of folders `<task id>/<name>.py`, of one task's folder, or named themselves: by task, none twice.

    WrongUse: nothing is there.
    """
    files: dict[Path, Path] = {}  # by what a path leads to
    for path in paths:
        for file in _below(path):
            files.setdefault(file.resolve(), file)
    return [files[place] for place in sorted(files, key=lambda place: (place.parent.name, place.name, place))]


def _below(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    expected = f"expected {path}/<task id>/<name>.py"
    if not path.is_dir():
        raise WrongUse(f"{path} is no folder and no file; {expected}")
    for pattern in ("*/*.py", "*.py"):
        if found := [each for each in path.glob(pattern) if each.is_file()]:
            return found
    raise WrongUse(f"no program found under {path}; {expected}")
