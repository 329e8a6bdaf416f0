"""What a command is asked about, tasks and programs, read and looked at before any work. Refusals are `WrongUse`."""

import argparse
import ast
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluator.judge import doctor, emulator_cost
from evaluator.judge.ending import WrongUse
from evaluator.judge.text_file import read_program
from evaluator.nn import run
from evaluator.records import Limits
from evaluator.tasks import catalog, torch_file, user
from evaluator.tasks.task import Task
from evaluator.tasks.user import TaskFileError


def add_constants(parser: argparse.ArgumentParser) -> None:
    text = "another value for a constant of a PyTorch file, such as dim=64; may be repeated"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=text)


def known_tasks(tasks_file: Path | None) -> Mapping[str, Task]:
    """The catalog, and the tasks of the user's file."""
    if tasks_file is None:
        return catalog.ALL
    try:
        own = user.load(tasks_file)
    except (OSError, ValueError) as error:
        raise WrongUse(str(error)) from error
    if taken := sorted(own.keys() & catalog.ALL.keys()):
        raise WrongUse(f"{tasks_file}: {taken[0]} is a task of the catalog; give yours another id")
    return {**catalog.ALL, **own}


def find_task(task_id: str, tasks: Mapping[str, Task], constants: Sequence[str] = ()) -> Task:
    """The task of an id, or of the path of a PyTorch file, with `constants` ("NAME=VALUE") in place of the file's."""
    if task_id.endswith(".py"):
        return _of_file(Path(task_id), constants)
    if constants:
        raise WrongUse(f"--set changes constants of a PyTorch file, and --task={task_id} is not the path of one")
    try:
        return catalog.find(task_id, tasks)
    except KeyError as error:
        raise WrongUse(str(error.args[0])) from error


def _of_file(path: Path, constants: Sequence[str]) -> Task:
    values = {}
    for text in constants:
        name, _, value = text.partition("=")
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (SyntaxError, ValueError) as error:
            raise WrongUse(f"--set={text}: expected NAME=VALUE with a Python literal, such as dim=64") from error
    try:
        return torch_file.load(path, values)
    except TaskFileError as error:
        raise WrongUse(str(error)) from error


def read(path: Path) -> str:
    """The text of a program."""
    try:
        return read_program(path)
    except ValueError as error:
        raise WrongUse(str(error)) from error


def require_size(task: Task, size: str) -> None:
    try:
        task.arrays_at(size)
    except KeyError as error:
        raise WrongUse(str(error.args[0])) from error


def require_affordable(task: Task, options: argparse.Namespace) -> None:
    """That the emulator has the memory for a task's arrays; says so where a verdict will take long there."""
    if options.device != "cpu":
        return
    limits = Limits.for_device(options.device)
    if (reason := emulator_cost.refusal(task, options.size, limits)) is not None:
        raise WrongUse(reason)
    if (warning := emulator_cost.warning(task, options.size, limits)) is not None:
        print(f"evaluator: {warning}", file=sys.stderr)


def require(task: Task | None, options: argparse.Namespace) -> None:
    """That this machine can judge programs for the task, or for any if None, on the device that was asked for."""
    if task is not None and task.reference == "torch" and options.device != "cpu":
        raise WrongUse("a PyTorch file is a reference on --device=cpu alone: its oracle has no form on a GPU")
    if task is not None:
        require_size(task, options.size)
        require_affordable(task, options)
        if options.tasks_file is not None and task.id not in catalog.ALL and task.reference == "nn":
            _require_outputs(task, options.size)
    reason = doctor.missing_for(options.device, [task] if task else [], options.size)
    if reason is not None:
        raise WrongUse(reason)


def _require_outputs(task: Task, size: str) -> None:
    """That a user's reference runs on its own shapes: else every program would seem to be at fault."""
    try:
        outputs = run.abstract(task, size)
    except ValueError as error:
        raise WrongUse(f"{error} (a reference sees `nn` and its arguments, nothing else of the file)") from error
    if not outputs:
        raise WrongUse(f"the reference of task {task.id} returns no array; `forward` must return one or several")
