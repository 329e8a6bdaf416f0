"""Options of the commands that judge, and the judge that they ask for."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.baselines import beside
from evaluator.baselines.record import Record
from evaluator.baselines.store import WrongFile
from evaluator.commands.ending import WrongUse
from evaluator.judge import table
from evaluator.judge.ladder import Judge
from evaluator.records import Mode, Verdict
from evaluator.tasks.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--size", help="cpu, kb or kb_v0 (cpu on the emulator, kb on a GPU)")
    parser.add_argument("--mode", choices=[str(mode) for mode in Mode], default=str(Mode.STANDARD))
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--json", action="store_true", help="one line per program on stdout")
    parser.add_argument("--tasks-file", type=Path, metavar="FILE", help="a Python file with tasks of your own")


def judge_options(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `Judge`."""
    return {"device": options.device, "mode": options.mode, "seed": options.seed}


def make_judge(options: argparse.Namespace) -> Judge:
    return Judge(**judge_options(options))


def stored(options: argparse.Namespace, tasks: Mapping[str, Task]) -> Sequence[Record]:
    """What `--baselines` names; nothing without it."""
    if options.baselines is None:
        return ()
    try:
        return beside.stored(options.baselines, options.device, tasks)
    except WrongFile as error:
        raise WrongUse(str(error)) from error


def show(options: argparse.Namespace, rows: Sequence[tuple[str, Verdict]], records: Sequence[Record] = ()) -> None:
    """Each verdict as a block, or as a line of JSON."""
    for name, verdict in rows:
        print(beside.to_json(verdict, records) if options.json else table.block(name, verdict))
        if records and not options.json:
            print(beside.lines(verdict, records))
    if options.device == "cpu" and any(verdict.speedups for _, verdict in rows):
        print(table.CPU_NOTE, file=sys.stderr)
