"""What stored baselines say of a program: never timed beside it, hence by way of the `graph` both were timed with."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

from evaluator.baselines.kinds import BASELINES, GRAPH
from evaluator.baselines.record import Record
from evaluator.records import Interval, Verdict


@dataclasses.dataclass(frozen=True)
class Unpaired:
    """A speed-up over a stored baseline."""

    baseline: str
    speedup: Interval  # baseline time over program time; wider than a paired one, since three intervals add up
    stored: Record  # the baseline's time
    graph: Record  # the stored time that stands for the verdict's own `graph`


@dataclasses.dataclass(frozen=True)
class Headline:
    """The smallest speed-up over all baselines: the only one to be shown without the others."""

    baseline: str
    speedup: Interval
    paired: bool


def unpaired(verdict: Verdict, records: Sequence[Record]) -> dict[str, Unpaired]:
    """By baseline: the speed-up over `graph` x stored time / stored time of `graph`.

    Of stored times at the verdict's task, size and model of device, at one precision class, with one driver; the newest
    counts. `records` are of the task as it is now (`store.current`). {} for a verdict without a speed-up over `graph`.
    ValueError for a verdict of the emulator, whose times no library's can be set against.
    """
    if verdict.device == "cpu":
        raise ValueError(
            "stored baselines say nothing of a verdict of device cpu: the emulator's time is not comparable with that "
            "of a library on a CPU; judge with --device=cuda"
        )
    paired = verdict.speedups.get(GRAPH)
    if paired is None:
        return {}
    found = {}
    for record in sorted((one for one in records if _fits(one, verdict)), key=lambda one: one.date):
        graph = _graph_beside(record, records)
        if record.subject.baseline != GRAPH and graph is not None:
            found[record.subject.baseline] = Unpaired(
                record.subject.baseline, _times(paired, _interval(record), _interval(graph)), record, graph
            )
    return {name: found[name] for name in BASELINES if name in found}


def headline(verdict: Verdict, records: Sequence[Record]) -> Headline | None:
    """The smallest over the paired baselines and, on `cuda`, the stored ones; None for a verdict without speed-ups."""
    all_of_them = [Headline(name, ratio, True) for name, ratio in verdict.speedups.items()]
    if verdict.device != "cpu":
        all_of_them += [Headline(one.baseline, one.speedup, False) for one in unpaired(verdict, records).values()]
    return min(all_of_them, key=lambda one: one.speedup.value, default=None)


def widened(verdict: Verdict, found: Mapping[str, Unpaired]) -> Verdict:
    """The verdict with its unpaired speed-ups among the others, for summaries over the smallest of all."""
    return dataclasses.replace(verdict, speedups={**verdict.speedups, **{k: v.speedup for k, v in found.items()}})


def _fits(record: Record, verdict: Verdict) -> bool:
    about = record.subject
    here = (verdict.task, verdict.size, verdict.device, verdict.device_name)
    return record.ok and verdict.device_name != "" and here == (about.task, about.size, about.device, about.device_name)


def _graph_beside(record: Record, records: Sequence[Record]) -> Record | None:
    """The newest stored time of `graph` for the same work on the same model of device with the same driver."""

    def work(one: Record) -> tuple:
        about = one.subject
        driver = about.versions.get("driver")
        return about.task, about.task_sha256, about.size, about.device, about.device_name, about.precision, driver

    beside = [one for one in records if one.ok and one.subject.baseline == GRAPH and work(one) == work(record)]
    return max(beside, key=lambda one: one.date, default=None)


def _times(paired: Interval, stored: Interval, graph: Interval) -> Interval:
    """paired x stored / graph; the relative half widths, on logarithms, are added in quadrature on either side."""
    value = paired.value * stored.value / graph.value
    up = math.hypot(_up(paired), _up(stored), _down(graph))
    down = math.hypot(_down(paired), _down(stored), _up(graph))
    return Interval(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def _up(interval: Interval) -> float:
    return math.log(interval.high / interval.value)


def _down(interval: Interval) -> float:
    return math.log(interval.value / interval.low)


def _interval(record: Record) -> Interval:
    assert record.median_us is not None
    assert record.low_us is not None
    assert record.high_us is not None
    return Interval(value=record.median_us, low=record.low_us, high=record.high_us)
