"""`compare A B --task=ID`: judges two programs; the second is timed in pairs against the first."""

import argparse
import sys
from pathlib import Path

from evaluator.commands import judging, subjects
from evaluator.commands.ending import exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A")
    parser.add_argument("b", type=Path, metavar="B")
    parser.add_argument("--task", required=True, metavar="ID")
    judging.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    task = subjects.find_task(options.task, subjects.known_tasks(options.tasks_file))
    first, second = subjects.read(options.a), subjects.read(options.b)
    subjects.require(task, options)
    with judging.make_judge(options) as judge:
        rows = [(str(options.a), judge.check(first, task, options.size, timing=False))]
        if rows[0][1].ok:
            rows.append((str(options.b), judge.check(second, task, options.size, plain=first)))
    judging.show(options, rows)
    if len(rows) == 2 and rows[1][1].ok:
        ratio = rows[1][1].speedups["plain"]
        print(
            f"{options.b} is {ratio.value:.3f} times as fast as {options.a} "
            f"(99 % interval {ratio.low:.3f} to {ratio.high:.3f}); `plain` above is {options.a}",
            file=sys.stderr,
        )
    return exit_code(verdict for _, verdict in rows)
