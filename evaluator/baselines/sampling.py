"""Repeated single calls of one baseline: how many, and what they come to."""

import dataclasses
import time
from collections.abc import Callable

from evaluator import _core

MOST_SAMPLES = 2002  # a multiple of seven
_WARM_CALLS, _WARM_S = 3, 0.2  # both: compilers record at the second call, and clocks rise within the time
_LOOK = 7  # samples between two looks at the interval: one more in each bucket


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long calls are timed."""

    width: float = 0.005  # relative half width of the 99 % interval that suffices
    budget_s: float = 2.0  # timed work; seven calls are made even if they take longer
    min_samples: int = 21


@dataclasses.dataclass(frozen=True)
class Sampled:
    median_us: float  # median of seven bucket means, consecutive calls in one bucket
    low_us: float
    high_us: float
    samples: int


def sample(time_us: Callable[[], float], effort: Effort) -> Sampled:
    """Times calls until the interval is tight or the time is spent. `time_us` makes one and gives its microseconds."""
    _warm_up(time_us)
    rule = _core.StoppingRule(width=effort.width, budget_s=effort.budget_s, min_pairs=effort.min_samples)
    times_us: list[float] = []
    stop = _core.Stop.CONTINUE
    while stop == _core.Stop.CONTINUE and len(times_us) < MOST_SAMPLES:
        times_us += [time_us() for _ in range(_LOOK)]
        interval = _core.time_interval(times_us)
        stop = _core.should_stop(rule, len(times_us), interval, sum(times_us) * 1e-6)
    return Sampled(interval.value, interval.low, interval.high, len(times_us))


def _warm_up(call: Callable[[], float]) -> None:
    began_s, calls = time.monotonic(), 0
    while calls < _WARM_CALLS or time.monotonic() - began_s < _WARM_S:
        call()
        calls += 1
