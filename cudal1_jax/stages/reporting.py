"""The arrows metrics and report: an iteration as numbers, a run as a summary."""

import collections
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cudal1_jax.contrastive import novelty, reward
from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.report import summary
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
        "reward/max": float(np.max(rewards)),
        "reward/std": float(np.std(rewards)),
        "advantage/std": float(np.std(advantages)),
        "completion/tokens": float(np.mean(lengths)),
        "completion/finished": float(np.mean([sample.finished for sample in samples])),
        **{f"outcome/{name}": count for name, count in sorted(outcomes.items())},
    }


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
