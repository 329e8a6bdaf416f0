"""`compare A B --task=ID`: judges two programs; the second is timed in pairs against the first."""

import argparse
import dataclasses
import sys
from pathlib import Path

from evaluator.commands import judging, plot, subjects
from evaluator.judge.ending import exit_code
from evaluator.judge.ladder import Judge
from evaluator.judge.timing import rounded
from evaluator.records import Verdict
from evaluator.tasks.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A")
    parser.add_argument("b", type=Path, metavar="B")
    parser.add_argument("--task", required=True, metavar="ID")
    judging.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    judging.require(options)
    task = subjects.find_task(options.task, subjects.known_tasks(options.tasks_file))
    first, second = subjects.read(options.a), subjects.read(options.b)
    subjects.require(task, options)
    with judging.make_judge(options) as judge:
        judged = _judged(judge, task, options, first, second)
    rows = list(zip((str(options.a), str(options.b)), judged, strict=False))
    judging.show(options, rows)
    plot.write(options.plot, rows)
    if len(rows) == 2 and judged[1].ok:
        ratio = judged[1].speedups["plain"]
        print(
            f"{options.b} is {ratio.value:.3f} times as fast as {options.a} "
            f"(99 % interval {ratio.low:.3f} to {ratio.high:.3f}); `plain` above is {options.a}",
            file=sys.stderr,
        )
    return exit_code(judged)


def _judged(judge: Judge, task: Task, options: argparse.Namespace, first: str, second: str) -> list[Verdict]:
    """The verdicts on both, the second with its speed-up over the first; on the first alone where that is at fault.

    On `cuda` both have theirs over `eager` and `graph` as well. A job is timed either against these or against a
    program, so the second is judged twice there.
    """
    on_gpu = options.device == "cuda"
    found = [judge.check(first, task, options.size, timing=on_gpu)]
    if not found[0].ok:
        return found
    alone = judge.check(second, task, options.size) if on_gpu else None
    if alone is not None and not alone.ok:
        return [*found, alone]
    beside = judge.check(second, task, options.size, plain=first)
    return [*found, beside if alone is None or not beside.ok else _together(alone, beside)]


def _together(alone: Verdict, beside: Verdict) -> Verdict:
    """One verdict on a program that was timed against the references, then against another program."""
    speedups = {**alone.speedups, **beside.speedups}
    notes = dict.fromkeys(filter(None, (alone.message, beside.message)))
    rungs = dict.fromkeys((*alone.rung_ms, *beside.rung_ms))
    return dataclasses.replace(
        alone,
        message="; ".join(notes),
        times={**beside.times, **alone.times},
        speedups=speedups,
        speedup=rounded(min(speedups.values(), key=lambda speedup: speedup.value)),
        rung_ms={rung: alone.rung_ms.get(rung, 0.0) + beside.rung_ms.get(rung, 0.0) for rung in rungs},
    )
