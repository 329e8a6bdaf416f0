"""`check FILE --task=ID`: judges one program."""

import argparse
from pathlib import Path

from evaluator.baselines import beside
from evaluator.commands import judging, plot, subjects
from evaluator.judge.ending import exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--task", required=True, metavar="ID", help="id, or path of a PyTorch file")
    subjects.add_constants(parser)
    parser.add_argument("--plain", type=Path, metavar="FILE", help="baseline where the task has no plain program")
    parser.add_argument("--completion", action="store_true", help="FILE is a completion that holds the program")
    judging.add_arguments(parser)
    beside.add_argument(parser)


def run(options: argparse.Namespace) -> int:
    judging.require(options)
    tasks = subjects.known_tasks(options.tasks_file)
    task, stored = subjects.find_task(options.task, tasks, options.set), judging.stored(options, tasks)
    text, plain = subjects.read(options.file), None if options.plain is None else subjects.read(options.plain)
    subjects.require(task, options)
    with judging.make_judge(options) as judge:
        if plain is not None:  # a baseline that is wrong would be easy to beat
            baseline = judge.check(plain, task, options.size, timing=False)
            if not baseline.ok:
                judging.show(options, [(str(options.plain), baseline)])
                return exit_code([baseline])
        verdict = judge.check(text, task, options.size, options.completion, plain=plain)
    judging.show(options, [(str(options.file), verdict)], stored)
    plot.write(options.plot, [(str(options.file), verdict)])
    return exit_code([verdict])
