"""`verify DIR...`: judges every program of some folders; a program's task is the name of its folder."""

import argparse
import operator
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from evaluator.baselines import beside
from evaluator.baselines.record import Record
from evaluator.commands import judging, plot, subjects
from evaluator.judge import program_files, table
from evaluator.judge.baseline import PLAIN
from evaluator.judge.ending import OURS, WrongUse, exit_code
from evaluator.judge.job import Job
from evaluator.judge.option_values import at_least
from evaluator.judge.summary import summarise
from evaluator.judge.verdict_json import to_json
from evaluator.records import Verdict
from evaluator.tasks.task import Task
from evaluator.whole_file import write_whole
from evaluator.workers.local import LocalPool

_NAME = operator.itemgetter(0)  # of a row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR or FILE", help="<task id>/<name>.py below it")
    parser.add_argument("--write", action="store_true", help="keep each verdict beside its program")
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="more are faster, and noisier (1)")
    judging.add_arguments(parser)
    beside.add_argument(parser)


def run(options: argparse.Namespace) -> int:
    judging.require(options)
    tasks = subjects.known_tasks(options.tasks_file)
    stored = judging.stored(options, tasks)
    jobs = [_job(path, tasks, options) for path in program_files.find(options.paths)]
    for task in {job.task.id: job.task for job in jobs}.values():
        subjects.require_affordable(task, options)
    subjects.require(None, options)
    rows: list[tuple[str, Verdict]] = []
    unwritten: list[str] = []
    try:
        _judge(jobs, options, stored, rows, unwritten)
    except KeyboardInterrupt:
        if rows:
            _show(options, sorted(rows, key=_NAME), tasks, stored)
        print(f"{len(rows)} of {len(jobs)} judged", file=sys.stderr)
        raise
    rows.sort(key=_NAME)
    _show(options, rows, tasks, stored)
    plot.write(options.plot, rows)
    for reason in unwritten:
        print(f"evaluator: {reason}", file=sys.stderr)
    return OURS if unwritten else exit_code(verdict for _, verdict in rows)


def _pool(workers: int, options: argparse.Namespace) -> LocalPool:
    """WrongUse: more workers than GPUs."""
    try:
        return LocalPool(workers, judging.judge_options(options))
    except ValueError as error:
        raise WrongUse(f"--workers: {error}") from error


def _judge(
    jobs: Sequence[Job],
    options: argparse.Namespace,
    stored: Sequence[Record],
    rows: list[tuple[str, Verdict]],
    unwritten: list[str],
) -> None:
    """Appends verdicts to `rows` as they come, each told and kept at once; to `unwritten`, which could not be kept."""
    with _pool(min(options.workers, len(jobs)), options) as pool:
        for job in jobs:
            pool.submit(job)
        for job, verdict in tqdm(pool.completed(), total=len(jobs), unit="program", desc="verifying", file=sys.stderr):
            rows.append((str(job.key), verdict))
            if options.json:
                print(beside.to_json(verdict, stored), flush=True)
            if options.write:
                path = Path(str(job.key)).with_suffix(f".{options.device}.json")
                try:
                    write_whole(path, [to_json(verdict), "\n"])
                except OSError as error:  # the verdicts to come are worth more than this file
                    unwritten.append(f"cannot write {path}: {error.strerror or error}")


def _job(path: Path, tasks: Mapping[str, Task], options: argparse.Namespace) -> Job:
    task = subjects.find_task(path.resolve().parent.name, tasks)
    subjects.require_size(task, options.size)
    plain_path = path.parent / PLAIN
    is_baseline = options.device == "cpu" and plain_path.is_file()  # on cuda: eager and graph
    plain = subjects.read(plain_path) if is_baseline else None
    return Job(key=str(path), text=subjects.read(path), task=task, size=options.size, plain=plain)


def _show(
    options: argparse.Namespace,
    rows: Sequence[tuple[str, Verdict]],
    tasks: Mapping[str, Task],
    stored: Sequence[Record],
) -> None:
    out = sys.stderr if options.json else sys.stdout
    print(table.table(rows), file=out)
    if stored:
        print(f"\n{beside.table(rows, stored)}", file=out)
    for name, verdict in rows:
        if not verdict.ok:
            print(f"\n{table.block(name, verdict)}", file=out)
    # The plain programs are the baseline itself: a summary of speed-ups is about the others.
    scored = [verdict for name, verdict in rows if Path(name).name != PLAIN] or [verdict for _, verdict in rows]
    if plain := len(rows) - len(scored):
        print(f"\nleft out of the figures, as the others' baseline: {plain} plain program{'s' * (plain > 1)}", file=out)
    print("" if plain else "\n", table.summary_text(summarise(scored)), sep="", file=out)
    if stored:
        print(beside.summary(scored, stored), file=out)
    weak = {task.id for task in tasks.values() if task.degenerate_at(options.size) or task.collapses}
    judged = {verdict.task for verdict in scored}
    if judged & weak and judged - weak:
        print("without degenerate and collapsing tasks:", file=out)
        print(table.summary_text(summarise(scored, leave_out=weak)), file=out)
    if options.device == "cpu":
        print(table.CPU_NOTE, file=out)
