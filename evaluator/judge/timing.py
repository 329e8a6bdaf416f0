"""Paired timing: baseline and candidate alternate in random order, and the score is the ratio of each pair."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from evaluator import _core
from evaluator.records import Interval, Outcome, ProgramFault, Rung

MIN_SAMPLE_US = 2000.0  # the scheduler's clock advances in steps far below this, so they stay under 1 %
GPU_SAMPLE_US = 200.0  # where events time each replay; the host needs about as long to prepare one
MAX_REPLAYS = 10_000
BUCKETS = 7  # of samples, on `cpu` each from processes of its own; the same number is in csrc/judging/statistics.hpp


class Timed(Protocol):
    """What timing asks of a device session."""

    def time(self, replays: int) -> float:
        """Microseconds per replay: of CPU on `cpu`, between events on `cuda`."""
        ...


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Times taken in turn, microseconds per replay, bucket after bucket; element i of both belongs to pair i."""

    reference_us: tuple[float, ...]
    program_us: tuple[float, ...]

    @property
    def speedup(self) -> Interval:
        """Reference over program, with its 99 % interval and its buckets."""
        ratios = np.log(np.divide(self.reference_us, self.program_us))
        buckets = np.exp(_core.bucket_means(ratios.tolist()))
        interval = _interval(_core.paired_interval(self.reference_us, self.program_us))
        return dataclasses.replace(interval, buckets=tuple(buckets.tolist()))

    @property
    def reference(self) -> Interval:
        return _interval(_core.time_interval(self.reference_us))

    @property
    def program(self) -> Interval:
        return _interval(_core.time_interval(self.program_us))


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long pairs are taken."""

    width: float  # relative half width of the interval that suffices
    budget_s: float  # timed work of both sides together; a pair in every bucket is taken even if it costs more
    min_pairs: int  # never fewer, unless the time is spent
    min_sample_us: float = MIN_SAMPLE_US  # replays are added up to a sample of this length

    @property
    def rule(self) -> _core.StoppingRule:
        return _core.StoppingRule(width=self.width, budget_s=self.budget_s, min_pairs=self.min_pairs)


def replays_for(session: Timed, min_sample_us: float = MIN_SAMPLE_US) -> int:
    """Replays in one sample, so that a sample lasts `min_sample_us`. Warms the session up as well."""
    first_us = session.time(1)
    if first_us >= 2 * min_sample_us:  # cold or not, one is long enough
        return 1
    single_us = min(first_us, session.time(1))
    if single_us >= min_sample_us:
        return 1
    # A single replay carries the cost of its message; a batch tells the true one.
    batch = min(MAX_REPLAYS, math.ceil(min_sample_us / 4 / max(single_us, 0.1)))
    each_us = max(session.time(batch), 0.01)
    return max(1, min(MAX_REPLAYS, math.ceil(min_sample_us / each_us)))


def time_pairs(buckets: Sequence[tuple[Timed, Timed]], schedule: Schedule, seed: int) -> Pairs:
    """Times both sides in turn until the interval is tight or the time is spent.

    `buckets` are seven pairs (reference, program), on `cpu` of processes of their own. Where a process's pages fall in
    the caches moves its times by some percent for as long as it lives: seven processes put that into the interval,
    where one would hide it. Every round takes one pair in each bucket, in random order.
    """
    order = np.random.Generator(np.random.Philox(key=[seed, 0]))
    least_us = schedule.min_sample_us
    counts = {session: replays_for(session, least_us) for session in dict.fromkeys(itertools.chain(*buckets))}
    replays = [(counts[reference], counts[program]) for reference, program in buckets]
    reference_us: list[list[float]] = [[] for _ in buckets]
    program_us: list[list[float]] = [[] for _ in buckets]
    spent_s, stop, rounds = 0.0, _core.Stop.CONTINUE, 0
    while stop == _core.Stop.CONTINUE:
        rounds += 1
        for bucket in order.permutation(len(buckets)):
            sides = [(0, reference_us), (1, program_us)]
            for side, times_us in sides if order.integers(2) else reversed(sides):
                times_us[bucket].append(_sample_us(buckets[bucket][side], replays[bucket][side]))
                spent_s += times_us[bucket][-1] * replays[bucket][side] * 1e-6
        if not _is_looked_at(rounds):
            continue
        pairs = Pairs(_flat(reference_us), _flat(program_us))
        interval = _core.paired_interval(pairs.reference_us, pairs.program_us)
        stop = _core.should_stop(schedule.rule, len(pairs.program_us), interval, spent_s)
    return pairs


def steady_pairs(take: Callable[[Schedule], Pairs], schedule: Schedule, widest: float | None) -> Pairs:
    """The pairs that `take` takes; where their interval is wider than `widest` of its value, anew, four times as long.

    `widest` None: any width will do. Raises ProgramFault `unstable_timing` where the second ones are too wide as well.
    """
    longer = dataclasses.replace(schedule, budget_s=4 * schedule.budget_s, min_pairs=4 * schedule.min_pairs)
    for attempt, each in ((1, schedule), (2, longer)):
        pairs = take(each)
        spread = (pairs.speedup.high - pairs.speedup.low) / 2 / pairs.speedup.value
        if widest is None or spread <= widest:
            return pairs
        if attempt == 2:
            message = f"the interval of the speed-up is {spread:.1%} wide to either side, expected {widest:.0%} at most"
            raise ProgramFault(Outcome.UNSTABLE_TIMING, Rung.TIMING, f"{message}; is other work on this device?")
    raise AssertionError


def time_alone(buckets: Sequence[Timed], schedule: Schedule) -> Interval:
    """Microseconds per replay of a program that has nothing to be compared with."""
    counts = {session: replays_for(session, schedule.min_sample_us) for session in dict.fromkeys(buckets)}
    replays = [counts[session] for session in buckets]
    times_us: list[list[float]] = [[] for _ in buckets]
    spent_s, stop, rounds = 0.0, _core.Stop.CONTINUE, 0
    while stop == _core.Stop.CONTINUE:
        rounds += 1
        for session, count, taken_us in zip(buckets, replays, times_us, strict=True):
            taken_us.append(_sample_us(session, count))
            spent_s += taken_us[-1] * count * 1e-6
        if not _is_looked_at(rounds):
            continue
        interval = _core.time_interval(_flat(times_us))
        stop = _core.should_stop(schedule.rule, len(_flat(times_us)), interval, spent_s)
    return _interval(interval)


def _is_looked_at(rounds: int) -> bool:
    """Whether the interval is due: every round at first, then ever more rarely, since each look is at all samples."""
    return rounds % 2 ** max(0, rounds.bit_length() - 6) == 0


def _flat(buckets: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Bucket after bucket, as the statistics expect; all are of one length."""
    return tuple(time_us for bucket in buckets for time_us in bucket)


def _sample_us(session: Timed, replays: int) -> float:
    """An empty plan may take no time that the clock can see; a ratio needs a positive one."""
    return max(session.time(replays), 0.001)


def rounded(speedup: Interval) -> float:
    """The speed-up as shown: towards 1, to two decimals."""
    return float(_core.round_towards_one(speedup.value))


def _interval(interval: _core.Interval) -> Interval:
    return Interval(value=interval.value, low=interval.low, high=interval.high)
