"""How many programs a minute are judged, and what one costs: by rung, waiting apart, with cold and with warm caches.

    python benchmarks/bench_evaluator.py                                                # two minutes on two cores
    python benchmarks/bench_evaluator.py --device=cuda --size=kb                        # and --size=cpu
    python benchmarks/bench_evaluator.py --device=cuda --size=kb --kernelbench=FOLDER   # against KernelBench's own

Half of the programs are right; the others are refused, cannot be traced, do not compile, give wrong values or touch
memory that is not theirs (`program_mix`), five of a task in a row. Three ways to judge them:
  alone     one judge, one program after the other
  pool      `LocalPool` with one worker for each GPU (on `cpu` --workers), programs handed over as it has room
each `cold` (no compiled program, no expected value, no process) and `warm` (new programs of the same tasks), the pool
also `seen` (the same programs once more). `seconds` is the median from when a program was handed over to its verdict,
`waiting` what of that is in no rung: expected values that are made and, in a pool, others whose turn it is. Programs
after one that touches memory that is not its own have a line too: on a GPU they find a new process. CuPy's own cache of
kernels and the driver's are left as they are.

With --kernelbench the plain programs of the tasks are judged by the pool and, as load_inline extensions, by
`eval_kernel_against_ref` of that checkout, a process for each as its scripts do (it needs PyTorch with nvcc, pydantic,
requests, and 5 to 40 s a program).
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import program_mix
from program_mix import Program

from evaluator.judge import table
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.records import Rung, Verdict
from evaluator.tasks import catalog
from evaluator.workers.local import LocalPool
from evaluator.workers.pool import stream

HEAD = ("judged by", "programs", "a minute", "seconds", "waiting", *map(str, Rung), "outcomes")
TASKS = "1_019,1_023,1_047"  # those that `kernelbench/` has as extensions


@dataclasses.dataclass(frozen=True)
class Seen:
    """One program judged."""

    program: Program
    verdict: Verdict
    wall_s: float  # from when it was handed over


@dataclasses.dataclass(frozen=True)
class Pass:
    """Some programs judged in one way."""

    title: str
    seconds: float
    seen: list[Seen]
    in_order: bool  # each was handed over when the one before it had its verdict

    @property
    def a_minute(self) -> float:
        return 60 * len(self.seen) / self.seconds


def alone(title: str, judge: Judge, programs: Sequence[Program], size: str) -> Pass:
    seen, began_s = [], time.perf_counter()
    for program in programs:
        began_one_s = time.perf_counter()
        verdict = judge.check(program.text, catalog.get(program.task_id), size)
        seen.append(Seen(program, verdict, time.perf_counter() - began_one_s))
    return Pass(title, time.perf_counter() - began_s, seen, in_order=True)


def pooled(title: str, pool: LocalPool, programs: Sequence[Program], size: str) -> Pass:
    given_s, seen, began_s = {}, [], time.perf_counter()

    def jobs() -> Iterator[Job]:
        for key, program in enumerate(programs):
            given_s[key] = time.perf_counter()
            yield Job(key=key, text=program.text, task=catalog.get(program.task_id), size=size)

    for job, verdict in stream(pool, jobs()):
        seen.append(Seen(programs[job.key], verdict, time.perf_counter() - given_s[job.key]))
    return Pass(title, time.perf_counter() - began_s, seen, in_order=False)


def mixed_passes(options: argparse.Namespace, tasks: list[str]) -> Iterator[Pass]:
    def programs(turn: int) -> list[Program]:
        return list(program_mix.mix(tasks, options.programs, first=turn * options.programs))

    judge_options = {"device": options.device, "mode": "quick"}
    if "alone" in options.ways:
        with empty_cache(), Judge(**judge_options) as judge:
            yield alone("alone, cold", judge, programs(0), options.size)
            yield alone("alone, warm", judge, programs(1), options.size)
    if "pool" in options.ways:
        with empty_cache(), LocalPool(options.workers, judge_options, compilers=options.compilers) as pool:
            yield pooled("pool, cold", pool, programs(2), options.size)
            yield pooled("pool, warm", pool, programs(3), options.size)
            yield pooled("pool, seen", pool, programs(3), options.size)


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """An object cache of its own, for this process and its children."""
    name, before = "XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before


def rows_of(run: Pass) -> list[tuple[str, ...]]:
    """A line for all programs of a pass, then one for each kind."""
    kinds = [kind for kind in program_mix.FAULTS if any(each.program.kind == kind for each in run.seen)]
    rows = [row(run.title, f"{run.a_minute:.0f}", run.seen)]
    rows += [row(f"  {kind}", "", [each for each in run.seen if each.program.kind == kind]) for kind in kinds]
    after = [each for before, each in itertools.pairwise(run.seen) if before.program.kind == program_mix.LETHAL]
    if after and run.in_order:
        rows.append(row(f"  after {program_mix.LETHAL}", "", after))
    return rows


def row(title: str, a_minute: str, seen: list[Seen]) -> tuple[str, ...]:
    rungs = [median_ms([each.verdict.rung_ms.get(rung) for each in seen]) for rung in Rung]
    outcomes = [str(each.verdict.outcome) for each in seen]
    counted = ", ".join(f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes)))
    wall_s = statistics.median(each.wall_s for each in seen)
    waiting_s = statistics.median(each.wall_s - sum(each.verdict.rung_ms.values()) / 1e3 for each in seen)
    return (title, str(len(seen)), a_minute, f"{wall_s:.2f}", f"{waiting_s:.2f}", *rungs, counted)


def median_ms(values: Sequence[float | None]) -> str:
    """Of those that came to the rung."""
    reached = [value for value in values if value is not None]
    return f"{statistics.median(reached):.1f}" if reached else "-"


def kernelbench_rows(options: argparse.Namespace, tasks: list[str], ours: Pass) -> Iterator[tuple[str, ...]]:
    """Ours, then KernelBench's evaluation of the tasks' plain programs, without and with a build of them."""
    yield ("judged by", "task", "seconds", "in the call", "an hour", "ours an hour over it", "outcome")
    outcomes = ", ".join(sorted({str(each.verdict.outcome) for each in ours.seen}))
    each_s = f"{ours.seconds / len(ours.seen):.2f}"
    yield (ours.title, "all", each_s, "-", f"{60 * ours.a_minute:.0f}", "1.0", outcomes)
    for task_id in tasks:
        with tempfile.TemporaryDirectory() as build:
            for cache in ("cold", "built"):
                seconds, found = kernelbench_run(options.kernelbench, task_id, build)
                an_hour, share = f"{3600 / seconds:.0f}", f"{ours.a_minute * seconds / 60:.1f}"
                if found["seconds"] == "-":  # it did not evaluate anything
                    an_hour = share = "-"
                cells = (f"{seconds:.1f}", found["seconds"], an_hour, share, found["outcome"])
                yield (f"KernelBench, {cache}", task_id, *cells)


def kernelbench_run(checkout: Path, task_id: str, build: str) -> tuple[float, dict[str, str]]:
    """Wall seconds of a process that evaluates one program, and what it says."""
    script = Path(__file__).with_name("kernelbench") / "evaluate.py"
    began_s = time.perf_counter()
    command = [sys.executable, str(script), str(checkout), task_id, build]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began_s
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        return seconds, {"outcome": f"exit code {done.returncode}: {said[:80]}", "seconds": "-"}
    found = json.loads(lines[-1])
    return seconds, {"outcome": found["outcome"], "seconds": f"{found['seconds']:.1f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--size", choices=("cpu", "kb", "kb_v0"), default="cpu")
    parser.add_argument("--tasks", default=TASKS, help="ids with commas between")
    parser.add_argument("--programs", type=int, default=20, help="of each pass")
    parser.add_argument("--ways", default="alone,pool", help="alone, pool, or both; none with an empty value")
    parser.add_argument("--workers", type=int, default=1, help="on cuda at most one for each GPU")
    parser.add_argument("--compilers", type=int, default=0, help="of each worker; 0: by the cores")
    parser.add_argument("--kernelbench", type=Path, help="a checkout of ScalingIntelligence/KernelBench")
    options = parser.parse_args()
    if options.kernelbench is not None and options.device != "cuda":
        parser.error("KernelBench evaluates on a GPU: compare with --device=cuda")
    options.ways = [way for way in options.ways.split(",") if way]
    if unknown := sorted(set(options.ways) - {"alone", "pool"}):
        parser.error(f"--ways: seen {unknown}, expected alone, pool, or both with a comma between")
    tasks = options.tasks.split(",")
    print(f"device {options.device}, size {options.size}, tasks {options.tasks}, quick mode; medians, rungs in ms")
    for run in mixed_passes(options, tasks):
        print(f"\n{run.title}: {len(run.seen)} programs in {run.seconds:.1f} s", flush=True)
        print(table.columns([HEAD, *rows_of(run)]), flush=True)
    if options.kernelbench is not None:
        with LocalPool(options.workers, {"device": options.device}, compilers=options.compilers) as pool:
            pooled("", pool, list(program_mix.same(tasks, len(tasks), first=0)), options.size)
            count = 5 * len(tasks)
            ours = pooled("this judge, pool", pool, list(program_mix.same(tasks, count, first=count)), options.size)
        print(f"\n{len(tasks)} plain programs:", flush=True)
        for each in kernelbench_rows(options, tasks, ours):
            print("  ".join(each), flush=True)


if __name__ == "__main__":
    main()
