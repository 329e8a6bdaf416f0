"""`tasks` lists the tasks, `tasks show ID` shows one as a program's author sees it."""

import argparse
from pathlib import Path

from evaluator.commands import subjects
from evaluator.judge import table
from evaluator.judge.baseline import plain_text
from evaluator.judge.ending import OK, WrongUse
from evaluator.tasks.task import Task
from evaluator.tasks.text import task_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("show",))
    parser.add_argument("id", nargs="?", metavar="ID", help="id, or path of a PyTorch file")
    parser.add_argument("--size", default="cpu")
    parser.add_argument("--tasks-file", type=Path, metavar="FILE")
    subjects.add_constants(parser)


def run(options: argparse.Namespace) -> int:
    tasks = subjects.known_tasks(options.tasks_file)
    if options.action == "show":
        if options.id is None:
            raise WrongUse("`tasks show` needs an id; `python -m evaluator tasks` lists them")
        _show(subjects.find_task(options.id, tasks, options.set), options.size)
        return OK
    cells = [("id", "name", "family", "sizes", "plain", "remarks")]
    for task in tasks.values():
        remarks = ["degenerate"] * bool(task.degenerate) + ["collapses"] * bool(task.collapses)
        plain = "yes" if plain_text(task.id) else "-"
        cells.append((task.id, task.name, task.family, " ".join(task.sizes), plain, ", ".join(remarks)))
    print(table.columns(cells))
    return OK


def _show(task: Task, size: str) -> None:
    subjects.require_size(task, size)
    print(f"{task.id}: {task.name} ({task.family}), size {size}, precision {task.precision}")
    for note in filter(None, (task.degenerate, task.collapses, *task.notes)):
        print(f"note: {note}")
    print("plain program: " + ("yes" if plain_text(task.id) else "none, so `check` gives no speed-up"))
    print("\n" + task_text(task, size), end="")
