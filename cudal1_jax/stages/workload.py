"""What a run works on: its tasks, and the verified programs that it begins with."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import grain

from cudal1_jax.report.run_directory import RunError
from evaluator.judge.baseline import PLAIN
from evaluator.judge.seeds import derive
from evaluator.tasks import catalog, split
from evaluator.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class Seed:
    """A program of `kernels/` for one of the run's tasks."""

    task: str  # task id
    name: str  # file name, for example "tiled.py"
    text: str


def named_tasks(ids: Sequence[str], kernels: Path) -> dict[str, Task]:
    """The tasks called `ids`. RunError: an id that does not exist, a task without a plain program to compare with."""
    try:
        tasks = {task: catalog.get(task) for task in ids}
    except KeyError as error:
        raise RunError(f"config.tasks: {error.args[0]}") from error
    missing = [task for task in tasks if not (kernels / task / PLAIN).is_file()]
    if missing:
        raise RunError(
            f"config.tasks: no plain program to measure against for {', '.join(missing)}: leave them out, or write"
            f" {kernels / missing[0] / PLAIN}"
        )
    return tasks


def short_tasks(
    level: int, families: Collection[str], plain_tokens: int, kernels: Path, count: Callable[[str], int]
) -> dict[str, Task]:
    """Every task of `level` and `families` whose plain program has at most `plain_tokens` tokens. RunError: none is.

    Held-out tasks are not among them: a run works on one of these only where its config names it.
    """
    tasks = {
        name: task
        for name, task in catalog.TASKS.items()
        if name.startswith(f"{level}_")
        and task.family in families
        and not split.held_out(task)
        and (kernels / name / PLAIN).is_file()
        and count((kernels / name / PLAIN).read_text(encoding="utf-8")) <= plain_tokens
    }
    if not tasks:
        raise RunError(
            f"no training task of level {level} and of {', '.join(families)} has a plain program of at most"
            f" {plain_tokens} tokens in {kernels}: raise config.task_plain_tokens, add to config.task_families, or name"
            " tasks in config.tasks"
        )
    return tasks


def schedule(tasks: Sequence[str], *, iterations: int, prompts: int, seed: int) -> list[list[str]]:
    """The task of each prompt of each iteration: every task once in a shuffled order, then all again in another.

    A Grain dataset that is read by number, so that the state of its iterator is the iteration: a run that was killed,
    or goes on for longer than was planned, has the same tasks in the same order.
    """
    order = grain.MapDataset.source(tasks).shuffle(seed=derive(seed, "tasks") % 2**32).repeat()
    batches = order.batch(prompts, batch_fn=list)
    return [batches[step] for step in range(iterations)]


def seeds(tasks: Sequence[str], kernels: Path) -> list[Seed]:
    """Every program of `kernels/` for these tasks, by task and file name."""
    return [
        Seed(task=task, name=path.name, text=path.read_text(encoding="utf-8"))
        for task in sorted(tasks)
        for path in sorted((kernels / task).glob("*.py"))
    ]
