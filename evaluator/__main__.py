"""Command line of the evaluator: judge, verify and compare programs, list tasks, examine the machine.

With --json, one line per program on stdout and everything else on stderr. Exit codes: 0 ok, 1 a judged fault,
2 wrong use, 3 a fault of the evaluator or of this machine, 4 `unsupported` or `unstable_timing`.
"""

import argparse
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from evaluator.baselines import beside
from evaluator.baselines import command as baselines
from evaluator.baselines.record import Record
from evaluator.baselines.store import WrongFile
from evaluator.judge import doctor, table
from evaluator.judge.baseline import PLAIN, plain_text
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.judge.summary import summarise
from evaluator.judge.text_file import read_program
from evaluator.judge.verdict_json import to_json
from evaluator.mutants import command as mutants
from evaluator.nn import run
from evaluator.records import EVALUATOR_VERSION, Mode, Outcome, Verdict
from evaluator.tasks import catalog, user
from evaluator.tasks.task import Task
from evaluator.tasks.text import task_text
from evaluator.workers import serve_command
from evaluator.workers.local import LocalPool
from evaluator.workers.pool import PoolError

OK, FAULT, WRONG_USE, OURS, UNDECIDED = 0, 1, 2, 3, 4
# Where the noise of a device is measured: a program of a few milliseconds on the emulator, of 60 us on a large GPU.
_NOISE = (("cpu", "1_001", "cpu"), ("cuda", "1_012", "kb"))
_UNDECIDED = (Outcome.UNSUPPORTED, Outcome.UNSTABLE_TIMING)


class WrongUse(Exception):
    """What was asked cannot be done as asked; the text says what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code."""
    options = _parser().parse_args(argv)
    if getattr(options, "size", "") is None:
        options.size = "kb" if options.device == "cuda" else "cpu"
    try:
        return options.command(options)
    except WrongUse as error:
        print(f"evaluator: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print("evaluator: interrupted", file=sys.stderr)
        return OURS
    except Exception:  # Python's own exit code would say that a program was judged
        traceback.print_exc()
        return OURS


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The gravest of several: a fault of ours, a judged fault, undecided, ok."""
    outcomes = {verdict.outcome for verdict in verdicts}
    if Outcome.EVALUATOR_ERROR in outcomes:
        return OURS
    if outcomes - {Outcome.OK, *_UNDECIDED}:
        return FAULT
    return UNDECIDED if outcomes & set(_UNDECIDED) else OK


def check(options: argparse.Namespace) -> int:
    """Judges one program."""
    tasks = _tasks(options)
    task, stored = _task(options.task, tasks), _stored(options, tasks)
    text, plain = _read(options.file), None if options.plain is None else _read(options.plain)
    _require(task, options)
    with _judge(options) as judge:
        if plain is not None:  # a baseline that is wrong would be easy to beat
            baseline = judge.check(plain, task, options.size, timing=False)
            if not baseline.ok:
                _show(options, [(str(options.plain), baseline)])
                return exit_code([baseline])
        verdict = judge.check(text, task, options.size, options.completion, plain=plain)
    _show(options, [(str(options.file), verdict)], stored)
    return exit_code([verdict])


def compare(options: argparse.Namespace) -> int:
    """Judges two programs; the second is timed in pairs against the first."""
    task = _task(options.task, _tasks(options))
    first, second = _read(options.a), _read(options.b)
    _require(task, options)
    with _judge(options) as judge:
        rows = [(str(options.a), judge.check(first, task, options.size, timing=False))]
        if rows[0][1].ok:
            rows.append((str(options.b), judge.check(second, task, options.size, plain=first)))
    _show(options, rows)
    if len(rows) == 2 and rows[1][1].ok:
        ratio = rows[1][1].speedups["plain"]
        print(
            f"{options.b} is {ratio.value:.3f} times as fast as {options.a} "
            f"(99 % interval {ratio.low:.3f} to {ratio.high:.3f}); `plain` above is {options.a}",
            file=sys.stderr,
        )
    return exit_code(verdict for _, verdict in rows)


def verify(options: argparse.Namespace) -> int:
    """Judges every program of a folder; a program's task is the name of its folder."""
    tasks = _tasks(options)
    stored = _stored(options, tasks)
    jobs = [_job(path, tasks, options) for path in _programs(options.directory)]
    _require(None, options)
    rows: list[tuple[str, Verdict]] = []
    judge_options = {"device": options.device, "mode": options.mode, "seed": options.seed}
    workers = 1 if options.device == "cuda" else min(options.workers, len(jobs))
    with LocalPool(workers, judge_options) as pool:
        for job in jobs:
            pool.submit(job)
        for job, verdict in tqdm(pool.completed(), total=len(jobs), unit="program", desc="verifying", file=sys.stderr):
            rows.append((str(job.key), verdict))
            if options.json:
                print(beside.to_json(verdict, stored), flush=True)
            if options.write:
                Path(str(job.key)).with_suffix(f".{options.device}.json").write_text(
                    to_json(verdict) + "\n", encoding="utf-8"
                )
    rows.sort()
    _verified(options, rows, tasks, stored)
    return exit_code(verdict for _, verdict in rows)


def list_tasks(options: argparse.Namespace) -> int:
    """Lists the tasks, or shows one as a program's author sees it."""
    tasks = _tasks(options)
    if options.action == "show":
        if options.id is None:
            raise WrongUse("`tasks show` needs an id; `python -m evaluator tasks` lists them")
        task = _task(options.id, tasks)
        _require_size(task, options.size)
        print(f"{task.id}: {task.name} ({task.family}), size {options.size}, precision {task.precision}")
        for note in filter(None, (task.degenerate, task.collapses, *task.notes)):
            print(f"note: {note}")
        print("plain program: " + ("yes" if plain_text(task.id) else "none, so `check` gives no speed-up"))
        print("\n" + task_text(task, options.size), end="")
        return OK
    cells = [("id", "name", "family", "sizes", "plain", "remarks")]
    for task in tasks.values():
        remarks = ["degenerate"] * bool(task.degenerate) + ["collapses"] * bool(task.collapses)
        plain = "yes" if plain_text(task.id) else "-"
        cells.append((task.id, task.name, task.family, " ".join(task.sizes), plain, ", ".join(remarks)))
    print(table.columns(cells))
    return OK


def examine(options: argparse.Namespace) -> int:
    """Prints what this machine can judge on, what is missing, and its noise."""
    for finding in doctor.examine():
        print(f"{finding.name:<14} {finding.seen}" + (f"  -> {finding.cure}" if finding.cure else ""))
    measured = [_print_noise(device, task_id, size) for device, task_id, size in _NOISE]
    return OK if any(measured) else OURS


def try_mutants(options: argparse.Namespace) -> int:
    """Counts the faulty variants of correct programs that the judge catches."""
    try:
        return mutants.run(options)
    except mutants.WrongUse as error:
        raise WrongUse(str(error)) from error


def measure_baselines(options: argparse.Namespace) -> int:
    """Measures how long other libraries take for the references of tasks."""
    try:
        return baselines.run(options, _tasks(options))
    except baselines.WrongUse as error:
        raise WrongUse(str(error)) from error


def serve(options: argparse.Namespace) -> int:
    """Judges for learners on other hosts, until it is told to end."""
    tasks = _tasks(options)
    if (reason := doctor.missing_for(options.device)) is not None:
        raise WrongUse(reason)
    try:
        serve_command.serve(options, tasks)
    except (PoolError, ValueError, OSError) as error:
        raise WrongUse(str(error)) from error
    return OK


def _print_noise(device: str, task_id: str, size: str) -> bool:
    """Whether the noise of `device` could be measured."""
    text, reason = plain_text(task_id), doctor.missing_for(device)
    if text is None or reason is not None:
        print(f"noise on {device:<5} not measured: {reason or f'no plain program of {task_id} is installed'}")
        return False
    task = catalog.get(task_id)
    with Judge(device=device, mode=Mode.QUICK) as judge:
        ratios = doctor.noise(lambda: judge.check(text, task, size, plain=text, cases=("plain",)))
    shown = ", ".join(f"{ratio.value:.4f} ({ratio.low:.4f} to {ratio.high:.4f})" for ratio in ratios)
    print(f"noise on {device:<5} {task_id} plain at {size} against itself, quick mode, 99 % intervals: {shown}")
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=EVALUATOR_VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = _adder(commands)

    one = add("check", check, "judge one program")
    one.add_argument("file", type=Path, metavar="FILE")
    one.add_argument("--task", required=True, metavar="ID")
    one.add_argument("--plain", type=Path, metavar="FILE", help="baseline where the task has no plain program")
    one.add_argument("--completion", action="store_true", help="FILE is a completion that holds the program")
    _judging(one)
    beside.add_argument(one)

    many = add("verify", verify, "judge every DIR/<task id>/*.py")
    many.add_argument("directory", type=Path, metavar="DIR")
    many.add_argument("--write", action="store_true", help="keep each verdict beside its program")
    many.add_argument("--workers", type=_positive, default=1, metavar="N", help="more are faster, and noisier (1)")
    _judging(many)
    beside.add_argument(many)

    two = add("compare", compare, "time program B in pairs against program A")
    two.add_argument("a", type=Path, metavar="A")
    two.add_argument("b", type=Path, metavar="B")
    two.add_argument("--task", required=True, metavar="ID")
    _judging(two)

    tasks = add("tasks", list_tasks, "list tasks; `tasks show ID` prints one")
    tasks.add_argument("action", nargs="?", choices=("show",))
    tasks.add_argument("id", nargs="?", metavar="ID")
    tasks.add_argument("--size", default="cpu")
    tasks.add_argument("--tasks-file", type=Path, metavar="FILE")
    mutants.add_arguments(add("mutants", try_mutants, "derive faulty programs and count which the judge catches"))
    baselines.add_arguments(add("baselines", measure_baselines, "time other libraries on the references of tasks"))
    serve_command.add_arguments(add("serve", serve, "judge for learners on other hosts (docs/pools.md)"))
    add("doctor", examine, "what this machine can judge on, what is missing, and its noise")
    return parser


def _adder(commands) -> Callable[..., argparse.ArgumentParser]:
    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        parser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        parser.set_defaults(command=command)
        return parser

    return add


def _judging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--size", help="cpu, kb or kb_v0 (cpu on the emulator, kb on a GPU)")
    parser.add_argument("--mode", choices=[str(mode) for mode in Mode], default=str(Mode.STANDARD))
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--json", action="store_true", help="one line per program on stdout")
    parser.add_argument("--tasks-file", type=Path, metavar="FILE", help="a Python file with tasks of your own")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"seen {value}, expected at least 1")
    return value


def _judge(options: argparse.Namespace) -> Judge:
    return Judge(device=options.device, mode=options.mode, seed=options.seed)


def _tasks(options: argparse.Namespace) -> Mapping[str, Task]:
    if options.tasks_file is None:
        return catalog.TASKS
    try:
        own = user.load(options.tasks_file)
    except (OSError, ValueError) as error:
        raise WrongUse(str(error)) from error
    if taken := sorted(own.keys() & catalog.TASKS.keys()):
        raise WrongUse(f"{options.tasks_file}: {taken[0]} is a task of the catalog; give yours another id")
    return {**catalog.TASKS, **own}


def _stored(options: argparse.Namespace, tasks: Mapping[str, Task]) -> Sequence[Record]:
    """What `--baselines` names; nothing without it."""
    if options.baselines is None:
        return ()
    try:
        return beside.stored(options.baselines, options.device, tasks)
    except WrongFile as error:
        raise WrongUse(str(error)) from error


def _task(task_id: str, tasks: Mapping[str, Task]) -> Task:
    try:
        return catalog.find(task_id, tasks)
    except KeyError as error:
        raise WrongUse(str(error.args[0])) from error


def _read(path: Path) -> str:
    try:
        return read_program(path)
    except ValueError as error:
        raise WrongUse(str(error)) from error


def _require_size(task: Task, size: str) -> None:
    try:
        task.arrays_at(size)
    except KeyError as error:
        raise WrongUse(str(error.args[0])) from error


def _require(task: Task | None, options: argparse.Namespace) -> None:
    """One clear message before any work."""
    if task is not None:
        _require_size(task, options.size)
        if options.tasks_file is not None and task.id not in catalog.TASKS:
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


def _programs(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise WrongUse(f"{directory} is no folder; expected one with <task id>/<name>.py in it")
    files = sorted(directory.glob("*/*.py")) or sorted(directory.glob("*.py"))
    if not files:
        raise WrongUse(f"no program found under {directory}; expected {directory}/<task id>/<name>.py")
    return files


def _job(path: Path, tasks: Mapping[str, Task], options: argparse.Namespace) -> Job:
    task = _task(path.resolve().parent.name, tasks)
    _require_size(task, options.size)
    beside = path.parent / PLAIN
    plain = _read(beside) if options.device == "cpu" and beside.is_file() else None  # on cuda: eager and graph
    return Job(key=str(path), text=_read(path), task=task, size=options.size, plain=plain)


def _show(options: argparse.Namespace, rows: Sequence[tuple[str, Verdict]], stored: Sequence[Record] = ()) -> None:
    for name, verdict in rows:
        print(beside.to_json(verdict, stored) if options.json else table.block(name, verdict))
        if stored and not options.json:
            print(beside.lines(verdict, stored))
    if options.device == "cpu" and any(verdict.speedups for _, verdict in rows):
        print(table.CPU_NOTE, file=sys.stderr)


def _verified(
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
    print("\n" + table.summary_text(summarise(scored)), file=out)
    if stored:
        print(beside.summary(scored, stored), file=out)
    weak = {task.id for task in tasks.values() if task.degenerate or task.collapses}
    if weak & {verdict.task for verdict in scored}:
        print("without degenerate and collapsing tasks:", file=out)
        print(table.summary_text(summarise(scored, leave_out=weak)), file=out)
    if options.device == "cpu":
        print(table.CPU_NOTE, file=out)


if __name__ == "__main__":
    sys.exit(main())
