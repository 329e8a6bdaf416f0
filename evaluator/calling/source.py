"""Which program is to be called, and whether its verdict says that it is right there."""

import dataclasses
import functools
from pathlib import Path

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.text_file import read_program
from evaluator.judge.verdict_json import from_json
from evaluator.program.identity import sha256
from evaluator.records import Outcome, Verdict
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task

DEVICES = ("cpu", "cuda")


class Unverified(ValueError):
    """The judge has not found the program right as it is to be called; the text says what to do."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One program's text, for one device."""

    name: str  # of its file, or <task>: for messages
    text: str
    task: Task
    device: str  # cpu or cuda
    verified: tuple[Array, ...] | None  # the arrays it may be called with; None: any, as the caller has allowed

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Names and roles of the arguments, in order; shapes are those verified, or of the task's first size."""
        return self.task.arrays_at(next(iter(self.task.sizes))) if self.verified is None else self.verified

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Of the arguments, in order."""
        return tuple(array.argument for array in self.arrays)


def find(
    program: str | Path,
    *,
    task: str | Task | None = None,
    device: str,
    verdict: str | Path | Verdict | None = None,
    allow_unverified: bool = False,
) -> Source:
    """The program at a path, or of that text, with the arrays for which `verdict` says that it is right.

    `task` is read off the folder where a path has none (kernels/<task>/<name>.py), and `verdict` off the file beside it
    (<name>.<device>.json). Raises ValueError for a path that cannot be read, KeyError for an unknown task, and
    Unverified where there is no verdict, or one on another text, task or device, or one that is not ok.
    """
    if device not in DEVICES:
        raise ValueError(f"there is no device {device!r}; choose one of {', '.join(DEVICES)}")
    path, text = read(program)
    known = _task(task, path)
    name = f"a program for {known.id}" if path is None else str(path)
    if allow_unverified:
        return Source(name, text, known, device, None)
    found = _verdict(verdict, path, device, name)
    _check(found, text, known, device, name)
    return Source(name, text, known, device, known.arrays_at(found.size))


def read(program: str | Path) -> tuple[Path | None, str]:
    """Path and text of a program that is given as either; a text has several lines, and no path.

    Names under kernels/ are found from anywhere. ValueError where a file cannot be read.
    """
    if isinstance(program, str) and "\n" in program:
        return None, program
    path, folder = Path(program), kernels_folder()
    if not path.is_file() and path.parts[:1] == ("kernels",) and folder is not None:
        path = folder.joinpath(*path.parts[1:])
    return path, read_program(path)


def _task(task: str | Task | None, path: Path | None) -> Task:
    if isinstance(task, Task):
        return task
    if task is not None:
        return catalog.get(task)
    name = "" if path is None else path.absolute().parent.name
    if name in catalog.ALL:
        return catalog.get(name)
    where = "a program's text names no task" if path is None else f"{path} lies in no folder named after a task"
    raise ValueError(f"{where}: pass task='1_019', say, or a Task")


def _verdict(given: str | Path | Verdict | None, path: Path | None, device: str, name: str) -> Verdict:
    if isinstance(given, Verdict):
        return given
    if given is None and path is None:
        raise Unverified(f"{name} comes without a verdict: pass verdict=, or allow_unverified=True")
    place = Path(given) if given is not None else path.with_suffix(f".{device}.json")  # type: ignore[union-attr]
    if not place.is_file():
        raise Unverified(f"there is no verdict {place}: {_cure(path or place, device)}, or pass allow_unverified=True")
    return from_json(place.read_text(encoding="utf-8"))


def _cure(path: Path, device: str) -> str:
    """How a program gets its verdict: `verify` takes the task's id from the folder."""
    command = f"`python -m evaluator verify {path} --device={device} --write` makes it"
    if path.absolute().parent.name in catalog.ALL:
        return command
    return f"move it to a folder that is called as its task (1_019, say); there {command}"


def _check(verdict: Verdict, text: str, task: Task, device: str, name: str) -> None:
    def refused(seen: str) -> Unverified:
        return Unverified(f"{name}: {seen}; have it judged again, or pass allow_unverified=True")

    if verdict.outcome != Outcome.OK:
        raise refused(f"its verdict is {verdict.outcome}, not ok")
    if verdict.device != device:
        raise refused(f"its verdict is of device {verdict.device}, and it is to run on {device}")
    if verdict.task != task.id:
        raise refused(f"its verdict is on task {verdict.task}, not {task.id}")
    seen = sha256(text)
    if verdict.program_sha256 != seen:
        raise refused(f"its text (sha256 {seen[:12]}) is not the one that was judged ({verdict.program_sha256[:12]})")
