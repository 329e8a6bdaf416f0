"""The cpu baseline: a task's plain program, compiled once and kept running between programs."""

import collections
import functools
from collections.abc import Callable
from pathlib import Path

import evaluator
from evaluator.devices import cpu
from evaluator.program.identity import sha256
from evaluator.records import Limits
from evaluator.tasks.task import Task

PLAIN = "plain.py"


@functools.cache
def kernels_folder() -> Path | None:
    """Folder of the verified programs: of the checkout, or as installed with the evaluator; None without either."""
    source = Path(evaluator.__file__).parent
    # A checkout comes first: what an editable install has copied may be older than what is being edited.
    beside = [source.parent] if (source.parent / "pyproject.toml").is_file() else []
    for base in (*beside, *map(Path, evaluator.__path__)):
        if any((base / "kernels").glob(f"*/{PLAIN}")):
            return base / "kernels"
    return None


def plain_text(task_id: str) -> str | None:
    """Text of a task's plain program, None where it has none."""
    folder = kernels_folder()
    if folder is None or "/" in task_id or task_id.startswith("."):
        return None
    path = folder / task_id / PLAIN
    return path.read_text(encoding="utf-8") if path.is_file() else None


class Baselines:
    """Running sessions of plain programs by (text, task, size); the least recently used is closed beyond `kept`."""

    def __init__(self, prepare: Callable[[str, Task, str], cpu.CompiledPlan], limits: Limits, kept: int = 4):
        self._prepare = prepare
        self._limits = limits
        self._kept = kept
        self._sessions: collections.OrderedDict[tuple, cpu.Session] = collections.OrderedDict()

    def session(self, text: str, task: Task, size: str) -> cpu.Session:
        """The running session of a plain program. Raises ProgramFault where the program itself is at fault."""
        key = (sha256(text), task.source_at(size), task.arrays_at(size))
        if key not in self._sessions:
            session = cpu.Session(self._prepare(text, task, size), self._limits)
            session.__enter__()
            self._sessions[key] = session
            while len(self._sessions) > self._kept:
                _, oldest = self._sessions.popitem(last=False)
                oldest.__exit__(None, None, None)
        self._sessions.move_to_end(key)
        return self._sessions[key]

    def drop(self, text: str, task: Task, size: str) -> None:
        """Closes one session, for example after its process was lost."""
        session = self._sessions.pop((sha256(text), task.source_at(size), task.arrays_at(size)), None)
        if session is not None:
            session.__exit__(None, None, None)

    def close(self) -> None:
        while self._sessions:
            _, session = self._sessions.popitem()
            session.__exit__(None, None, None)
