"""From verdicts to rewards: the speed-up, and its smoothing over a task's history."""

from collections.abc import Iterable, Sequence

import numpy as np

from cudal1_jax.contrastive.records import Judged
from evaluator.records import Interval, Outcome, Verdict

# The baselines that are timed in turn with the program; a reward never rests on a stored time.
PAIRED = {"cpu": ("plain",), "cuda": ("eager", "graph")}


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


def smooth(
    rewards: Sequence[float], history: Sequence[float], *, window: int, sigma_min: float, clip: float
) -> list[float]:
    """(r - mu) / sigma clipped to [-clip, clip]; mu, sigma over the last `window` rewards of `ok` programs of the task.

    sigma (of the population) is at least `sigma_min`; without any history every smoothed reward is 0.
    """
    if not history:
        return [0.0] * len(rewards)
    recent = np.asarray(history[-window:], np.float64)
    scaled = (np.asarray(rewards, np.float64) - recent.mean()) / max(float(recent.std()), sigma_min)
    return [float(value) for value in np.clip(scaled, -clip, clip)]


def record(judged: Iterable[Judged], task: str) -> float | None:
    """The best speed-up of a task so far, None without one: what makes a jump sudden (the judge measures it again)."""
    measured = [speedup(entry.verdict) for entry in judged if entry.task == task and entry.verdict.ok]
    return max((interval.value for interval in measured if interval is not None), default=None)
