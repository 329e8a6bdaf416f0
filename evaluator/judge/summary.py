"""Summaries of many verdicts: success rate and speed-ups, honest about misses and about single tasks."""

import dataclasses
import math
import statistics
from collections.abc import Collection, Mapping, Sequence

from evaluator.records import Verdict

COUNTS_ABOVE = 1.01  # below this a speed-up is noise
FAST_P = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0)


@dataclasses.dataclass(frozen=True)
class Speedups:
    """Statistics of one list of speed-ups (baseline time over program time)."""

    count: int
    mean: float
    geomean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    maximum: float
    above: int  # how many count as faster: above 1.01
    leave_one_out: float  # mean without the largest: how much one task carries


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a table of verdicts comes to, one verdict a task."""

    tasks: int
    ok: int
    success_rate: float
    all_tasks: Speedups | None  # a miss counts as 1.0; None without any task
    successes: Speedups | None  # only programs that are right; None without any
    fast_p: Mapping[float, float]  # p -> share of all tasks that are right and faster than p
    peak_bytes: int  # largest over the programs


def speedups(values: Sequence[float]) -> Speedups | None:
    """Statistics of positive speed-ups, None for no values."""
    if not values:
        return None
    if min(values) <= 0 or not all(map(math.isfinite, values)):
        raise ValueError(f"speed-ups must be positive and finite, seen {min(values)} to {max(values)}")
    lower, median, upper = _quartiles(values)
    rest = sorted(values)[:-1]
    return Speedups(
        count=len(values),
        mean=statistics.fmean(values),
        geomean=math.exp(statistics.fmean(map(math.log, values))),
        median=median,
        lower_quartile=lower,
        upper_quartile=upper,
        maximum=max(values),
        above=sum(value > COUNTS_ABOVE for value in values),
        leave_one_out=statistics.fmean(rest) if rest else values[0],
    )


def summarise(verdicts: Sequence[Verdict], leave_out: Collection[str] = ()) -> Summary:
    """Summary over verdicts, without those of the tasks in `leave_out` (degenerate or collapsing ones).

    An ok verdict without a baseline has no speed-up: it counts as right, and is in no list of speed-ups. ValueError:
    speed-ups that were measured on several models of device.
    """
    kept = [verdict for verdict in verdicts if verdict.task not in leave_out]
    names = sorted({verdict.device_name for verdict in kept if verdict.ok} - {""})
    if len(names) > 1:
        raise ValueError(f"verdicts from {' and '.join(names)} do not add up: summarise those of each device apart")
    good = [verdict for verdict in kept if verdict.ok]
    # The raw value, since rounding is for display.
    scores = [_score(verdict) for verdict in good]
    known = [score for score in scores if score is not None]
    misses = [1.0] * (len(kept) - len(good))
    return Summary(
        tasks=len(kept),
        ok=len(good),
        success_rate=len(good) / len(kept) if kept else 0.0,
        all_tasks=speedups(known + misses),
        successes=speedups(known),
        fast_p={p: sum(score > p for score in known) / len(kept) if kept else 0.0 for p in FAST_P},
        peak_bytes=max((verdict.peak_bytes or 0 for verdict in good), default=0),
    )


def _score(verdict: Verdict) -> float | None:
    return min((interval.value for interval in verdict.speedups.values()), default=None)


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, median, upper
