"""The arrows metrics and report: an iteration as numbers, a run as a summary."""

import collections
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cudal1_jax.contrastive import novelty, reward
from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.report import machine, summary
from cudal1_jax.report.run_directory import RunDirectory
from cudal1_jax.report.summary import Summary
from cudal1_jax.stages.judging import Bench
from evaluator.records import Verdict


def metrics(
    step: int,
    prompts: Sequence[Prompt],
    samples: Sequence[Sample],
    verdicts: Sequence[Verdict],
    advantages: Sequence[float],
) -> dict[str, Any]:
    """One row: what was asked, how it ended, and how much there was to learn from it."""
    rewards = [reward.reward(verdict) for verdict in verdicts]
    outcomes = collections.Counter(str(verdict.outcome) for verdict in verdicts)
    lengths = [len(sample.tokens) for sample in samples]
    return {
        "step": step,
        "tasks": [prompt.task for prompt in prompts],
        "exemplars": float(np.mean([len(prompt.exemplars) for prompt in prompts])),
        "success_rate": float(np.mean([verdict.ok for verdict in verdicts])),
        "reward/mean": float(np.mean(rewards)),
        "reward/quartile_1": float(np.quantile(rewards, 0.25)),
        "reward/median": float(np.median(rewards)),
        "reward/quartile_3": float(np.quantile(rewards, 0.75)),
        "reward/max": float(np.max(rewards)),
        "reward/std": float(np.std(rewards)),
        "advantage/std": float(np.std(advantages)),
        "completion/tokens": float(np.mean(lengths)),
        "completion/finished": float(np.mean([sample.finished for sample in samples])),
        **{f"outcome/{name}": count for name, count in sorted(outcomes.items())},
    }


def rates(row: Mapping[str, Any], samples: Sequence[Sample], *, sampled: bool, dtype: str) -> dict[str, float]:
    """Tokens a second, the update's share of what the device can do, and memory, of an iteration with these metrics.

    `sampled`: in this iteration, and not in one before it that was killed. `dtype`: of the update's products.
    """
    found = machine.peak_memory()
    if sampled and row["time/rollout_s"] > 0:
        found["rollout/tokens_per_s"] = sum(len(sample.tokens) for sample in samples) / row["time/rollout_s"]
    if "learn/tokens" in row and row["time/update_s"] > 0:
        found["learn/tokens_per_s"] = row["learn/tokens"] / row["time/update_s"]
        found["learn/mfu"] = row["learn/flops_per_device"] / row["time/update_s"] / machine.matmul_flops_per_s(dtype)
    return found


def recordable(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with null for what is no number: JSON has neither NaN nor infinities."""
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}


def summarise(bench: Bench, directory: RunDirectory, kernels: Path, config: str, startup_s: float) -> Summary:
    """The run's summary, written with the best program of each task; its file marks the run as finished."""
    judged = bench.store.judged()
    rows = bench.store.metrics()
    result = summary.summarise(
        judged,
        novelty.novel(judged, novelty.corpus_streams(kernels)),
        sorted(bench.tasks),
        directory,
        config=config,
        device=bench.device,
        size=bench.size,
        iterations=len(rows),
        seconds=startup_s + sum(row["time/iteration_s"] for row in rows),
    )
    summary.save(directory, result, judged)
    return result
