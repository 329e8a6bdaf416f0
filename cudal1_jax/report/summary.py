"""What a run achieved, from its recorded verdicts: the figures of `summary.json` and the table a person reads."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cudal1_jax.contrastive.exemplars import Exemplar, pool
from cudal1_jax.contrastive.records import SEED_STEP, Judged
from cudal1_jax.report.run_directory import RunDirectory, RunError
from evaluator.judge.table import span
from evaluator.whole_file import write_whole

EMULATOR_NOTE = (
    "Speed-ups are over the task's plain program on the CPU emulator of CUDA: they say nothing of a GPU."
    " Intervals are 99 %."
)


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """The best that a run holds for one task."""

    task: str  # task id
    best_speedup: float | None  # reference time over program time; None where no right program was measured
    low: float | None  # 99 % interval
    high: float | None
    success_rate: float | None  # share of the policy's samples that are ok; None where the task was not sampled
    program: str | None  # path of the best program's file
    source: str | None  # "policy" or "seed"
    device_name: str = ""  # model of the device that judged the task's programs; "" where unknown


@dataclasses.dataclass(frozen=True)
class Summary:
    """The object of `summary.json`."""

    config: str  # name of the config page
    device: str
    size: str
    iterations: int  # finished ones
    seconds: float  # wall time: start-up of the last invocation and every finished iteration
    samples: int  # completions judged, seeds not among them
    ok: int
    success_rate: float | None  # ok / samples
    novel_ok: int  # ok programs that are in neither kernels/, the prompt nor the store before them
    geomean_speedup: float | None  # over all tasks of the run, best program each, a miss counted as 1.0
    tasks: tuple[TaskResult, ...]


def summarise(
    judged: Sequence[Judged],
    novel: Sequence[bool],
    tasks: Sequence[str],
    directory: RunDirectory,
    *,
    config: str,
    device: str,
    size: str,
    iterations: int,
    seconds: float,
) -> Summary:
    """Add up the verdicts of a run; `novel[i]` says whether `judged[i]` was new when it was written."""
    outcomes = [entry.verdict.ok for entry in judged if entry.step != SEED_STEP]
    results = tuple(_task_result(task, judged, directory) for task in tasks)
    return Summary(
        config=config,
        device=device,
        size=size,
        iterations=iterations,
        seconds=round(seconds, 1),
        samples=len(outcomes),
        ok=sum(outcomes),
        success_rate=_share(outcomes),
        novel_ok=sum(new and entry.verdict.ok for new, entry in zip(novel, judged, strict=True)),
        geomean_speedup=_geomean([result.best_speedup or 1.0 for result in results]),
        tasks=results,
    )


def save(directory: RunDirectory, summary: Summary, judged: Sequence[Judged]) -> None:
    """Write the best program of each task, then `summary.json`, whose presence means that the run has finished."""
    directory.programs.mkdir(exist_ok=True)
    for result in summary.tasks:
        fastest = best(judged, result.task)
        if fastest is not None:
            write_whole(_program_path(directory, result.task), [fastest.program])
    write_whole(directory.summary, [json.dumps(dataclasses.asdict(summary), indent=2), "\n"])


def load(directory: RunDirectory) -> Summary:
    """Read a finished run's summary. RunError: the file is damaged."""
    try:
        fields: dict[str, Any] = json.loads(directory.summary.read_text(encoding="utf-8"))
        return Summary(**{**fields, "tasks": tuple(TaskResult(**task) for task in fields["tasks"])})
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{directory.summary} is damaged ({error}): remove it and give the same command again, which writes it"
            " anew from the store"
        ) from error


def table(summary: Summary) -> str:
    """The final table: task, best speed-up with interval, success rate, source, and where the program is."""
    rows = [("task", "speed-up", "99 % interval", "success", "source", "program")]
    rows += [
        (
            result.task,
            _number(result.best_speedup),
            "-" if result.low is None or result.high is None else span(result.low, result.high),
            "-" if result.success_rate is None else f"{result.success_rate:.0%}",
            result.source or "-",
            result.program or "-",
        )
        for result in summary.tasks
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    rate = "no sample" if summary.success_rate is None else f"{summary.success_rate:.0%} of {summary.samples} samples"
    lines += [
        "",
        f"{summary.config}: {summary.iterations} iterations in {summary.seconds:.0f} s; right: {rate};"
        f" new and right: {summary.novel_ok}; geometric mean of the best: {_number(summary.geomean_speedup)}",
    ]
    if summary.device == "cpu":
        lines.append(EMULATOR_NOTE)
    lines += _devices_note(summary.tasks)
    return "\n".join(lines)


def _devices_note(results: Sequence[TaskResult]) -> list[str]:
    """Which device judged which task, where there were several: their speed-ups are not to be compared."""
    names = sorted({result.device_name for result in results} - {""})
    if len(names) < 2:
        return []
    tasks = [", ".join(result.task for result in results if result.device_name == name) for name in names]
    return ["Tasks were judged on different devices, and so are not comparable with one another:"] + [
        f"  {name}: {of_name}" for name, of_name in zip(names, tasks, strict=True)
    ]


def _task_result(task: str, judged: Sequence[Judged], directory: RunDirectory) -> TaskResult:
    sampled = [entry.verdict.ok for entry in judged if entry.task == task and entry.step != SEED_STEP]
    fastest = best(judged, task)
    if fastest is None:
        return TaskResult(task, None, None, None, _share(sampled), None, None)
    first = next(entry for entry in judged if entry.verdict.program_sha256 == fastest.sha256 and entry.task == task)
    return TaskResult(
        task=task,
        best_speedup=fastest.speedup.value,
        low=fastest.speedup.low,
        high=fastest.speedup.high,
        success_rate=_share(sampled),
        program=str(_program_path(directory, task)),
        source="seed" if first.step == SEED_STEP else "policy",
        device_name=first.verdict.device_name,
    )


def best(judged: Sequence[Judged], task: str) -> Exemplar | None:
    """The fastest program of a task among those that are right; None without one."""
    return max(pool(judged, task), key=lambda program: program.speedup.value, default=None)


def _program_path(directory: RunDirectory, task: str) -> Path:
    return directory.programs / f"{task}.py"


def _share(outcomes: Sequence[bool]) -> float | None:
    return sum(outcomes) / len(outcomes) if outcomes else None


def _geomean(values: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
