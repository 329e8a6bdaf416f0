"""The cpu baseline: a task's plain program, compiled once and kept running between programs."""

import collections
import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

import evaluator
from evaluator.devices import cpu
from evaluator.judge.expected import Expected
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


def open_sessions(
    stack: contextlib.ExitStack, compiled: cpu.CompiledPlan, limits: Limits, inputs: Expected, count: int
) -> list[cpu.Session]:
    """`count` new processes of one program, each run once on `inputs` and alike in what they did; `stack` owns them."""
    sessions = [stack.enter_context(cpu.Session(compiled, limits)) for _ in range(count)]
    for session in sessions:
        session.run(list(inputs.inputs))
    return sessions


class Baselines:
    """Running sessions of plain programs, `buckets` of each; the least recently used program's close beyond `kept`."""

    def __init__(
        self, prepare: Callable[[str, Task, str], cpu.CompiledPlan], limits: Limits, buckets: int, kept: int = 2
    ):
        self._prepare = prepare
        self._limits = limits
        self._buckets = buckets
        self._kept = kept
        self._running: collections.OrderedDict[tuple, _Running] = collections.OrderedDict()

    def sessions(self, text: str, task: Task, size: str, inputs: Expected) -> list[cpu.Session]:
        """The sessions of a plain program, last run on `inputs`. Raises ProgramFault where it is itself at fault."""
        key = (sha256(text), task.source_at(size), task.arrays_at(size))
        if key not in self._running:
            while len(self._running) >= self._kept:
                self._running.popitem(last=False)[1].close()
            self._running[key] = _Running(self._prepare(text, task, size), self._limits, self._buckets)
        self._running.move_to_end(key)
        return self._running[key].on(inputs)

    def close(self) -> None:
        """Ends all of them; they start again when asked for."""
        while self._running:
            self._running.popitem()[1].close()


class _Running:
    """The sessions of one plain program, and what they ran on last."""

    def __init__(self, compiled: cpu.CompiledPlan, limits: Limits, count: int):
        self._compiled, self._limits, self._count = compiled, limits, count
        self._stack = contextlib.ExitStack()
        self._sessions: list[cpu.Session] = []
        self._inputs: Expected | None = None

    def on(self, inputs: Expected) -> list[cpu.Session]:
        if not self._sessions:
            self._sessions = open_sessions(self._stack, self._compiled, self._limits, inputs, self._count)
        elif self._inputs is not inputs:
            for session in self._sessions:
                session.run(list(inputs.inputs))
        self._inputs = inputs
        return self._sessions

    def close(self) -> None:
        self._stack.close()
