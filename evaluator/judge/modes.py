"""What each mode spends: how many seeds, how tight an interval. The ladder itself is the same for all."""

import dataclasses

from evaluator.records import Mode
from evaluator.tasks.task import CASES


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long the judge looks in one mode."""

    plain_seeds: int  # draws of the task's own distribution
    hidden_seeds: int  # draws of each other case
    width: float  # relative half width of the 99 % interval at which timing stops
    min_pairs: int  # timed pairs at least, at most what the time limit allows beyond seven
    timed_cases: int  # hidden cases that the timed replays are tried on, picked at random
    knock_out: bool  # drop each launch in turn and see whether the output changes


MANY_DRAWS_AT = "cpu"  # the size at which `verify` takes all its draws


def at_large_sizes(effort: Effort) -> Effort:
    """Fewer draws, each of which may be gigabytes."""
    return dataclasses.replace(effort, plain_seeds=5, hidden_seeds=2)


EFFORTS: dict[Mode, Effort] = {
    Mode.QUICK: Effort(plain_seeds=2, hidden_seeds=1, width=0.01, min_pairs=14, timed_cases=2, knock_out=False),
    Mode.STANDARD: Effort(plain_seeds=5, hidden_seeds=2, width=0.005, min_pairs=21, timed_cases=4, knock_out=False),
    Mode.VERIFY: Effort(
        plain_seeds=1000, hidden_seeds=10, width=0.003, min_pairs=35, timed_cases=len(CASES), knock_out=True
    ),
}
