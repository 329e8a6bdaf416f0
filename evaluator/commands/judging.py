"""Options of the commands that judge, and the judge that they ask for."""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.baselines import beside
from evaluator.baselines.record import Record
from evaluator.baselines.store import WrongFile
from evaluator.commands import plot
from evaluator.judge import table
from evaluator.judge.ending import WrongUse
from evaluator.judge.ladder import Judge
from evaluator.records import LAYERS, Limits, Mode, Verdict
from evaluator.tasks.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--size", help="cpu, kb or kb_v0 (cpu on the emulator, kb on a GPU)")
    parser.add_argument("--mode", choices=[str(mode) for mode in Mode], default=str(Mode.STANDARD))
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--json", action="store_true", help="one line per program on stdout")
    parser.add_argument("--tasks-file", type=Path, metavar="FILE", help="a Python file with tasks of your own")
    layers = f"around the process that has the GPU: some of {','.join(LAYERS)} (all), or none"
    parser.add_argument("--gpu-confinement", type=_layers, metavar="LAYERS", help=layers)
    plot.add_argument(parser)


def require(options: argparse.Namespace) -> None:
    """That options fit together, before any work. Raises WrongUse."""
    if options.gpu_confinement is not None and options.device != "cuda":
        raise WrongUse("--gpu-confinement is about the process that has the GPU: it needs --device=cuda")
    plot.require(options.plot)


def judge_options(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `Judge`."""
    limits = Limits.for_device(options.device)
    if options.gpu_confinement is not None:
        limits = dataclasses.replace(limits, gpu_confinement=options.gpu_confinement)
    return {"device": options.device, "mode": options.mode, "seed": options.seed, "limits": limits}


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


def _layers(text: str) -> tuple[str, ...]:
    names = () if text == "none" else tuple(text.split(","))
    if unknown := [name for name in names if name not in LAYERS]:
        raise argparse.ArgumentTypeError(f"seen {unknown[0]!r}, expected some of {','.join(LAYERS)}, or none")
    return names


def show(options: argparse.Namespace, rows: Sequence[tuple[str, Verdict]], records: Sequence[Record] = ()) -> None:
    """Each verdict as a block, or as a line of JSON."""
    for name, verdict in rows:
        print(beside.to_json(verdict, records) if options.json else table.block(name, verdict))
        if records and not options.json:
            print(beside.lines(verdict, records))
    if options.device == "cpu" and any(verdict.speedups for _, verdict in rows):
        print(table.CPU_NOTE, file=sys.stderr)
