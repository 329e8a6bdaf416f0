"""One program judged from Python, as `python -m evaluator check` does it."""

from pathlib import Path

from evaluator.calling.source import read
from evaluator.judge.ladder import Judge
from evaluator.records import Limits, Mode, Verdict
from evaluator.tasks import catalog
from evaluator.tasks.task import Task


def check(
    program: str | Path,
    task: str | Task,
    *,
    device: str = "cpu",
    size: str | None = None,
    mode: Mode | str = Mode.QUICK,
    seed: int = 0,
    limits: Limits | None = None,
) -> Verdict:
    """The verdict on one program, given as its text or as the path of its file.

    `size`: one of the task's, if None `kb` on cuda and `cpu` on cpu. Starts and ends the judge's processes; to judge
    many programs use `evaluator.judge.ladder.Judge`. Raises ValueError for an unknown device or mode or a file that
    cannot be read, KeyError for an unknown task or size. What the program does wrong is in the verdict.
    """
    _, text = read(program)
    known = catalog.get(task) if isinstance(task, str) else task
    with Judge(device, mode, seed, limits) as judge:
        return judge.check(text, known, size or ("kb" if device == "cuda" else "cpu"))
