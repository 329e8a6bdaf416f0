"""`python -m evaluator mutants`: derives faulty programs from correct ones and counts which the judge catches."""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from evaluator.judge import doctor, program_files
from evaluator.judge.ending import FAULT, OK, OURS, WrongUse
from evaluator.judge.option_values import at_least, positive
from evaluator.judge.text_file import read_program
from evaluator.mutants import report
from evaluator.mutants.crew import Crew, Failure
from evaluator.mutants.derive import KINDS, Mutant, derive, in_turns
from evaluator.mutants.exposure import DRAWS
from evaluator.mutants.results import Results, WrongFile, to_json
from evaluator.mutants.trial import Original, Settings, Trial
from evaluator.mutants.trying_process import Batch
from evaluator.program.identity import sha256
from evaluator.records import Mode
from evaluator.tasks import catalog
from evaluator.tasks.task import Task

BATCH = 12  # mutants of one program that share the runs of their original


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="*", type=Path, default=[Path("kernels")], metavar="DIR or FILE", help="kernels/ by default")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="the judge's; inputs are searched on the emulator")
    add("--size", default="cpu", help="of the tasks (cpu)")
    add("--mode", choices=[str(mode) for mode in Mode], default=str(Mode.QUICK))
    add("--kinds", default="", metavar="A,B", help=f"of fault; all by default: {', '.join(KINDS)}")
    add("--limit", type=at_least(1), metavar="N", help="try the first N; kinds and programs take turns")
    add("--seed", type=int, default=0, help="of the order and of every random draw (0)")
    add("--draws", type=at_least(1), default=DRAWS, metavar="N", help=f"inputs of the search ({DRAWS})")
    add("--slowest-ms", type=positive, default=15.0, metavar="T", help="programs that run longer are left out (15)")
    add("--workers", type=at_least(1), default=1, metavar="N")
    add("--minutes", type=positive, default=math.inf, metavar="T", help="begin nothing new after that; see --out")
    add("--out", type=Path, metavar="FILE", help="keep results there, and take up what it holds")
    add("--json", action="store_true", help="one line per mutant on stdout")


def run(options: argparse.Namespace) -> int:
    """0: every exposed mutant was caught; 1: some survive; 3: a fault of ours left some untried."""
    kinds = _kinds(options.kinds)
    texts = {path: _read(path) for path in _files(options.paths, options.size)}
    mutants = _derived(texts, kinds)
    for device in dict.fromkeys(("cpu", options.device)):  # the search needs the emulator whatever the judge's device
        if (reason := doctor.missing_for(device)) is not None:
            raise WrongUse(reason)
    settings = Settings(
        device=options.device,
        size=options.size,
        mode=options.mode,
        seed=options.seed,
        draws=options.draws,
    )
    try:
        results = Results(settings, options.out)
    except WrongFile as error:
        raise WrongUse(str(error)) from error
    until_s = time.monotonic() + 60 * options.minutes
    workers = 1 if options.device == "cuda" else options.workers
    with results, Crew(workers, settings) as crew:
        failures = _examine(crew, results, texts, until_s)
        chosen = _chosen(mutants, results, texts, options)
        failures += _try(crew, results, texts, chosen, until_s, options.json)
    trials = [results.trials[mutant.id] for mutant in chosen if mutant.id in results.trials]
    out = sys.stderr if options.json else sys.stdout
    _show(trials, mutants, kinds, failures, out)
    _show_left_out(results, texts, options.slowest_ms, out)
    if len(trials) < len(chosen):
        print(f"{len(chosen) - len(trials)} of {len(chosen)} mutants are not tried yet; see --out", file=out)
    survive = any(trial.exposed and not trial.caught for trial in trials)
    return OURS if failures else FAULT if survive else OK


def _examine(crew: Crew, results: Results, texts: dict[Path, str], until_s: float) -> list[Failure]:
    """Runs each program once that is not known yet."""
    batches = [
        Batch(str(path), text, _task(path)) for path, text in texts.items() if sha256(text) not in results.originals
    ]
    return _gathered(crew.records(batches, until_s), results, len(batches), "program")


def _chosen(
    mutants: Sequence[Mutant], results: Results, texts: dict[Path, str], options: argparse.Namespace
) -> list[Mutant]:
    """The first of the order by turns, without those of programs that are left out."""
    known = {str(path): results.originals.get(sha256(text)) for path, text in texts.items()}
    usable = {
        program
        for program, original in known.items()
        if original is not None and not _left_out(original, options.slowest_ms)
    }
    return [mutant for mutant in in_turns(mutants, options.seed) if mutant.program in usable][: options.limit]


def _try(
    crew: Crew,
    results: Results,
    texts: dict[Path, str],
    chosen: Sequence[Mutant],
    until_s: float,
    print_json: bool,
) -> list[Failure]:
    """Tries what is not known yet, program after program, so that a task's expected values are kept."""
    left = [mutant for mutant in chosen if mutant.id not in results.trials]
    batches = []
    for path, text in texts.items():
        own = [mutant for mutant in left if mutant.program == str(path)]
        batches += [Batch(str(path), text, _task(path), tuple(own[i : i + BATCH])) for i in range(0, len(own), BATCH)]
    return _gathered(crew.records(batches, until_s), results, len(left), "mutant", print_json)


def _gathered(
    records: Iterable[Original | Trial | Failure],
    results: Results,
    total: int,
    unit: str,
    print_json: bool = False,
) -> list[Failure]:
    """Keeps what comes; gives the failures."""
    failures = []
    with tqdm(total=total, unit=unit, desc=f"{unit}s", file=sys.stderr, disable=total == 0) as bar:
        for record in records:
            if isinstance(record, Failure):
                failures.append(record)
                continue
            results.add(record)
            bar.update()
            if isinstance(record, Trial) and print_json:
                print(to_json(record), flush=True)
    return failures


def _show(
    trials: Sequence[Trial],
    mutants: Sequence[Mutant],
    kinds: Sequence[str],
    failures: Sequence[Failure],
    out: TextIO,
) -> None:
    derived = Counter(mutant.kind for mutant in mutants)
    print(report.table(trials, {kind: derived[kind] for kind in kinds if derived[kind]}), file=out)
    print("\n" + report.summary(trials), file=out)
    if listed := report.survivors(trials):
        print("\nsurvivors:\n" + listed, file=out)
    for failure in failures:
        names = ", ".join(mutant.id for mutant in failure.batch.mutants)
        print(f"not tried: {failure.batch.program} {names}: {failure.message}", file=sys.stderr)


def _show_left_out(results: Results, texts: dict[Path, str], slowest_ms: float, out: TextIO) -> None:
    known = [original for text in texts.values() if (original := results.originals.get(sha256(text))) is not None]
    slow = [original for original in known if original.fault is None and _left_out(original, slowest_ms)]
    if slow:
        names = ", ".join(f"{original.program} ({original.run_ms:.0f})" for original in slow)
        print(f"left out, since a run takes more than {slowest_ms:g} ms of CPU (ms): {names}", file=out)
    for original in known:
        if original.fault is not None:
            print(f"left out: {original.program}: {original.fault}", file=out)


def _left_out(original: Original, slowest_ms: float) -> bool:
    return original.fault is not None or original.run_ms is None or original.run_ms > slowest_ms


def _derived(texts: dict[Path, str], kinds: Sequence[str]) -> list[Mutant]:
    """Mutants of all programs, no text twice."""
    found: dict[str, Mutant] = {}
    for path, text in texts.items():
        try:
            for mutant in derive(path, text, kinds):
                found.setdefault(mutant.id, mutant)
        except ValueError as error:
            raise WrongUse(f"{path}: {error}") from error
    return list(found.values())


def _kinds(text: str) -> list[str]:
    asked = [name for name in text.split(",") if name] or list(KINDS)
    if unknown := [name for name in asked if name not in KINDS]:
        raise WrongUse(f"there is no kind of fault {unknown[0]!r}; there are {', '.join(KINDS)}")
    return asked


def _files(paths: Sequence[Path], size: str) -> list[Path]:
    """Programs of folders <task id>/<name>.py and files, sorted: programs of one task stand together."""
    files = program_files.find(paths)
    for file in files:
        if file.resolve().parent.name not in catalog.ALL:
            raise WrongUse(f"{file}: its folder is not called after a task; `python -m evaluator tasks` lists them")
        try:
            _task(file).arrays_at(size)
        except KeyError as error:
            raise WrongUse(str(error.args[0])) from error
    return files


def _task(path: Path) -> Task:
    return catalog.get(path.resolve().parent.name)


def _read(path: Path) -> str:
    try:
        return read_program(path)
    except ValueError as error:
        raise WrongUse(str(error)) from error
