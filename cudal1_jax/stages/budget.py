"""Wall-clock time of a run: no iteration begins that cannot end within the budget."""

from collections.abc import Callable, Sequence

SLACK = 1.15  # an iteration may take this much longer than the one before it; the first one compiles as well


class Budget:
    """Counts from `started_s` on the clock `now`; `limit_s` <= 0: no limit; `reserve_s` is for the summary."""

    def __init__(self, now: Callable[[], float], started_s: float, limit_s: float, reserve_s: float):
        self.now = now
        self._end_s = started_s + limit_s - reserve_s if limit_s > 0 else float("inf")
        self._last_s = 0.0

    def allows_another(self) -> bool:
        """Whether another iteration, about as long as the last one, would end in time."""
        return self.now() + SLACK * self._last_s <= self._end_s

    def spent(self, iteration_s: float) -> None:
        """Take note of how long an iteration took."""
        self._last_s = iteration_s


class Stopwatch:
    """Seconds of each part of an iteration, on the clock `now`; those of `parts` that never end are 0."""

    def __init__(self, now: Callable[[], float], parts: Sequence[str] = ()):
        self._now = now
        self._start_s = self._last_s = now()
        self._laps: dict[str, float] = {f"time/{name}_s": 0.0 for name in parts}

    def lap(self, name: str) -> None:
        """End the part called `name`; the next one begins here."""
        now_s = self._now()
        self._laps[f"time/{name}_s"] = now_s - self._last_s
        self._last_s = now_s

    @property
    def total_s(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._start_s

    def laps(self) -> dict[str, float]:
        """Seconds by part, and of all of them together up to the last lap."""
        return {**self._laps, "time/iteration_s": self._last_s - self._start_s}
