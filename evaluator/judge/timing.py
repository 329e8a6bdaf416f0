"""Paired timing: plain program and candidate alternate in random order, and the score is the ratio of each pair."""

import dataclasses
import math
from typing import Protocol

import numpy as np

from evaluator import _core
from evaluator.records import Interval

MIN_SAMPLE_US = 2000.0  # the scheduler's clock advances in steps far below this, so they stay under 1 %
MAX_REPLAYS = 10_000


class Timed(Protocol):
    """What timing asks of a device session."""

    def time(self, replays: int) -> float:
        """Microseconds of CPU per replay."""
        ...


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Times taken in turn, microseconds per replay; element i of both belongs to pair i."""

    reference_us: tuple[float, ...]
    program_us: tuple[float, ...]

    @property
    def speedup(self) -> Interval:
        """Reference over program, with its 99 % interval."""
        return _interval(_core.paired_interval(list(self.reference_us), list(self.program_us)))

    @property
    def reference(self) -> Interval:
        return _interval(_core.time_interval(list(self.reference_us)))

    @property
    def program(self) -> Interval:
        return _interval(_core.time_interval(list(self.program_us)))


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long pairs are taken."""

    width: float  # relative half width of the interval that suffices
    budget_s: float  # CPU time of both sides together; seven pairs are taken even if they cost more
    min_pairs: int  # never fewer, unless the time is spent


def replays_for(session: Timed) -> int:
    """Replays in one sample, so that a sample lasts MIN_SAMPLE_US. Warms the session up as well."""
    single_us = min(session.time(1), session.time(1))
    if single_us >= MIN_SAMPLE_US:
        return 1
    # A single replay carries the cost of its message; a batch tells the true one.
    batch = min(MAX_REPLAYS, math.ceil(MIN_SAMPLE_US / 4 / max(single_us, 0.1)))
    each_us = max(session.time(batch), 0.01)
    return max(1, min(MAX_REPLAYS, math.ceil(MIN_SAMPLE_US / each_us)))


def time_pairs(reference: Timed, program: Timed, schedule: Schedule, seed: int) -> Pairs:
    """Times both sides in turn until the interval is tight or the time is spent.

    Buckets are consecutive, so drift during the measurement widens the interval and does not bias the ratio.
    """
    rule = _core.StoppingRule(width=schedule.width, budget_s=schedule.budget_s, min_pairs=schedule.min_pairs)
    order = np.random.Generator(np.random.Philox(key=[seed, 0]))
    reference_replays, program_replays = replays_for(reference), replays_for(program)
    reference_us: list[float] = []
    program_us: list[float] = []
    spent_s, interval = 0.0, _core.Interval(1.0, 0.0, 2.0)
    while _core.should_stop(rule, len(program_us), interval, spent_s) == _core.Stop.CONTINUE:
        if order.integers(2):
            reference_us.append(_sample_us(reference, reference_replays))
            program_us.append(_sample_us(program, program_replays))
        else:
            program_us.append(_sample_us(program, program_replays))
            reference_us.append(_sample_us(reference, reference_replays))
        spent_s += (reference_us[-1] * reference_replays + program_us[-1] * program_replays) * 1e-6
        if len(program_us) >= 7:
            interval = _core.paired_interval(reference_us, program_us)
    return Pairs(reference_us=tuple(reference_us), program_us=tuple(program_us))


def time_alone(program: Timed, schedule: Schedule) -> Interval:
    """Microseconds per replay of a program that has nothing to be compared with."""
    rule = _core.StoppingRule(width=schedule.width, budget_s=schedule.budget_s, min_pairs=schedule.min_pairs)
    replays = replays_for(program)
    times_us: list[float] = []
    spent_s, interval = 0.0, _core.Interval(1.0, 0.0, 2.0)
    while _core.should_stop(rule, len(times_us), interval, spent_s) == _core.Stop.CONTINUE:
        times_us.append(_sample_us(program, replays))
        spent_s += times_us[-1] * replays * 1e-6
        if len(times_us) >= 7:
            interval = _core.time_interval(times_us)
    return _interval(_core.time_interval(times_us))


def _sample_us(session: Timed, replays: int) -> float:
    """An empty plan may take no time that the clock can see; a ratio needs a positive one."""
    return max(session.time(replays), 0.001)


def rounded(speedup: Interval) -> float:
    """The speed-up as shown: towards 1, to two decimals."""
    return float(_core.round_towards_one(speedup.value))


def _interval(interval: "_core.Interval") -> Interval:
    return Interval(value=interval.value, low=interval.low, high=interval.high)
