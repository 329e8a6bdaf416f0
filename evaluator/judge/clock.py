"""Clocks: real CPU time, or times derived from a program's hash so that a resumed run can be compared bit for bit."""

from collections.abc import Callable

from evaluator.judge.seeds import derive
from evaluator.judge.timing import Timed

# (sha256 of the program, number of the sample) -> microseconds per replay
Clock = Callable[[str, int], float]


def derived(program_sha256: str, sample: int) -> float:
    """Between 1 and 9 ms by the program, with 0.1 % of jitter by the sample. For tests of resumption only."""
    base_us = 1000.0 + derive(0, program_sha256) % 8_000
    return base_us * (1.0 + (derive(0, program_sha256, sample) % 1000) * 1e-6)


class ClockedSession:
    """A session whose launches are real and whose times come from a `Clock`."""

    def __init__(self, session: Timed, program_sha256: str, clock: Clock):
        self._session = session
        self._program_sha256 = program_sha256
        self._clock = clock
        self._samples = 0

    def time(self, replays: int) -> float:
        """Microseconds per replay by the clock; one replay runs, so that outputs are those of a timed launch."""
        self._session.time(1)
        self._samples += 1
        return self._clock(self._program_sha256, self._samples)
