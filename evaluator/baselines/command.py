"""`python -m evaluator baselines`: how long other libraries take for the references of tasks, measured and stored."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from evaluator.baselines import kinds
from evaluator.baselines.kinds import BASELINES
from evaluator.baselines.measuring import Measurer
from evaluator.baselines.record import Record, to_json
from evaluator.baselines.sampling import Effort
from evaluator.baselines.store import Store, WrongFile
from evaluator.judge import doctor
from evaluator.judge.ending import OK, OURS, WrongUse
from evaluator.judge.option_values import positive
from evaluator.judge.table import columns
from evaluator.tasks import catalog
from evaluator.tasks.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("tasks", nargs="*", metavar="TASK", help="ids; every task that has the size by default")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--size", help="cpu, kb or kb_v0 (cpu on a CPU, kb on a GPU)")
    add("--baselines", metavar="A,B", help=f"out of {','.join(BASELINES)}; those that this machine has by default")
    add("--out", type=Path, metavar="FILE", help="a line of JSON for each; what it holds is not measured again")
    add("--seconds", type=positive, default=Effort().budget_s, metavar="S", help="of timed calls at most (2)")
    add("--deadline", type=positive, default=300.0, metavar="S", help="of one baseline, compilation included (300)")
    add("--retry", action="store_true", help="measure stored failures again")
    add("--json", action="store_true", help="one line per record on stdout")
    add("--tasks-file", type=Path, metavar="FILE", help="a Python file with tasks of your own")


def run(options: argparse.Namespace, tasks: Mapping[str, Task]) -> int:
    """0: every baseline has a time; 3: some have none, and their records say why."""
    chosen = _chosen(options.tasks, tasks, options.size)
    names = _baselines(options.baselines, options.device)
    if options.device == "cuda" and (reason := doctor.missing_for("cuda")) is not None:
        raise WrongUse(reason)
    effort = Effort(budget_s=options.seconds)
    try:
        store = Store(options.out)
    except WrongFile as error:
        raise WrongUse(str(error)) from error
    with store, Measurer(options.device, options.size, effort, options.deadline) as measurer:
        records = _measured(measurer, store, [(task, name) for task in chosen for name in names], options)
    print(table(records), file=sys.stderr if options.json else sys.stdout)
    return OK if all(record.ok for record in records) else OURS


def table(records: Sequence[Record]) -> str:
    """One line per record: time with its interval, or why there is none."""
    cells = [("task", "baseline", "class", "median", "99 % interval", "calls", "clock")]
    for record in records:
        about = record.subject
        times = "-", "-", "-", "-"
        if record.ok:
            low, median, high = (f"{us / 1e3:.4f}" for us in (record.low_us, record.median_us, record.high_us) if us)
            times = f"{median} ms", f"{low} to {high}", str(record.samples), record.clock
        cells.append((about.task, about.baseline, about.precision, *times))
    notes = [f"{one.subject.task} {one.subject.baseline}: {one.error}" for one in records if not one.ok]
    return "\n".join([columns(cells), *notes])


def _measured(
    measurer: Measurer, store: Store, wanted: Sequence[tuple[Task, str]], options: argparse.Namespace
) -> list[Record]:
    """Records of all that is wanted, in order, those that are stored already among them."""
    records = []
    with tqdm(wanted, unit="baseline", desc="baselines", file=sys.stderr) as bar:
        for task, name in bar:
            bar.set_postfix_str(f"{task.id} {name}")
            known = store.find(measurer.subject(task, name))
            if known is None or (options.retry and not known.ok):
                known = measurer.measure(task, name)
                store.add(known)
            records.append(known)
            if options.json:
                print(to_json(known), flush=True)
    return records


def _chosen(ids: Sequence[str], tasks: Mapping[str, Task], size: str) -> list[Task]:
    if not ids:
        return [task for task in tasks.values() if size in task.sizes]
    try:
        chosen = [catalog.find(task_id, tasks) for task_id in dict.fromkeys(ids)]
        for task in chosen:
            task.arrays_at(size)
    except KeyError as error:
        raise WrongUse(str(error.args[0])) from error
    return chosen


def _baselines(text: str | None, device: str) -> list[str]:
    if text is None:
        return [name for name in BASELINES if kinds.missing(name, device) is None]
    names = [name for name in dict.fromkeys(text.split(",")) if name]
    if unknown := [name for name in names if name not in BASELINES]:
        raise WrongUse(f"there is no baseline {unknown[0]!r}; there are {', '.join(BASELINES)}")
    for name in names:
        if (reason := kinds.missing(name, device)) is not None:
            raise WrongUse(f"baseline {name}: {reason}")
    if not names:
        raise WrongUse(f"--baselines names none; there are {', '.join(BASELINES)}")
    return names
