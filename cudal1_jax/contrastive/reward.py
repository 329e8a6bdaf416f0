"""From verdicts to rewards: the speed-up, its smoothing over a task's history, and what makes a jump suspicious."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from evaluator.records import Interval, Outcome, Rung, Verdict

# The baselines that are timed in turn with the program; a reward never rests on a stored time.
PAIRED = {"cpu": ("plain",), "cuda": ("eager", "graph")}


@dataclasses.dataclass(frozen=True)
class JumpRule:
    """When a speed-up is measured a second time, and when the second measurement rejects it."""

    above: float = 3.0  # any speed-up above this
    times_record: float = 2.0  # any speed-up above this many times the task's record
    tolerance: float = 0.1  # largest relative difference between the two measurements


def speedup(verdict: Verdict) -> Interval | None:
    """The smallest speed-up over the paired baselines of the device, not rounded; None where none was measured."""
    paired = [verdict.speedups[name] for name in PAIRED[verdict.device] if name in verdict.speedups]
    return min(paired, key=lambda interval: interval.value) if paired else None


def reward(verdict: Verdict) -> float:
    """r = the speed-up of a program that is right, 1 where its task has no baseline, 0 for every other outcome."""
    if not verdict.ok:
        return 0.0
    measured = speedup(verdict)
    return 1.0 if measured is None else measured.value


def fill_unjudged(rewards: Sequence[float], verdicts: Sequence[Verdict]) -> list[float]:
    """Rewards of a group; a sample that the evaluator failed to judge has the mean of the others: no gradient."""
    judged = [r for r, v in zip(rewards, verdicts, strict=True) if v.outcome is not Outcome.EVALUATOR_ERROR]
    mean = sum(judged) / len(judged) if judged else 0.0
    return [mean if v.outcome is Outcome.EVALUATOR_ERROR else r for r, v in zip(rewards, verdicts, strict=True)]


def success(verdict: Verdict) -> float:
    """1 for a program that is right, else 0: the reward of the self-supervised stage."""
    return float(verdict.ok)


def smooth(rewards: Sequence[float], history: Sequence[float], *, window: int, sigma_min: float, clip: float) -> list:
    """(r - mu) / sigma clipped to [-clip, clip]; mu, sigma over the last `window` rewards of `ok` programs of the task.

    sigma (of the population) is at least `sigma_min`; without any history every smoothed reward is 0.
    """
    if not history:
        return [0.0] * len(rewards)
    recent = np.asarray(history[-window:], np.float64)
    scaled = (np.asarray(rewards, np.float64) - recent.mean()) / max(float(recent.std()), sigma_min)
    return [float(value) for value in np.clip(scaled, -clip, clip)]


def is_jump(verdict: Verdict, record: float | None, rule: JumpRule) -> bool:
    """Whether a speed-up must be reproduced before it counts. `record`: the task's best so far, None without one."""
    measured = speedup(verdict) if verdict.ok else None
    if measured is None:
        return False
    return measured.value > rule.above or (record is not None and measured.value > rule.times_record * record)


def settle(verdict: Verdict, recheck: Verdict | None, rule: JumpRule) -> Verdict:
    """The verdict that counts: the first one, or `not_reproduced` where a second measurement contradicts it."""
    if recheck is None:
        return verdict
    first, second = speedup(verdict), speedup(recheck)
    if not recheck.ok or second is None:
        reason = f"the second measurement ended in {recheck.outcome}: {recheck.message}"
    elif first is not None and abs(second.value - first.value) > rule.tolerance * first.value:
        reason = (
            f"measured {first.value:.3f}x, then {second.value:.3f}x with other seeds: more than"
            f" {rule.tolerance:.0%} apart"
        )
    else:
        return verdict
    return dataclasses.replace(
        verdict, outcome=Outcome.NOT_REPRODUCED, rung=Rung.RECHECK, message=reason, speedups={}, speedup=None
    )
