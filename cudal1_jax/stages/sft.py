"""Stage 1, supervised fine-tuning: the policy learns from a generated corpus to write CUDA that compiles and is right.

corpus -> tokens -> packed rows -> update -> held-out loss -> checkpoint -> adapter

Only the assistant's words are learnt; requests are read. The held-out loss is that of examples whose chain of steps
is in no training example; the adapter that had the lowest is written, and training stops where it no longer falls.
"""

import dataclasses
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from cudal1_jax.learn import best, objectives, optimizer, packing, step
from cudal1_jax.learn.best import Best
from cudal1_jax.learn.checkpoint import Checkpointer
from cudal1_jax.policy import lora
from cudal1_jax.report import progress, summary
from cudal1_jax.report.metrics import MetricsLog
from cudal1_jax.report.run_directory import RunDirectory, RunError
from cudal1_jax.stages import sft_examples
from cudal1_jax.stages.policy import Policy
from evaluator.whole_file import write_whole


def run(config: ConfigDict, directory: RunDirectory, *, load_policy: Callable[[ConfigDict], Policy]) -> None:
    """Begin or continue the training of `config` in `directory`: adapter, figures and summary are there at the end.

    RunError: no corpus, no model, or nothing to train on; the text says what to do, and nothing recorded is lost.
    """
    started_s = time.monotonic()
    policy = load_policy(config)
    shape = {"row_tokens": config.data.row_tokens, "rows": config.data.rows}
    train, held_out = sft_examples.load(
        config.data.corpus,
        policy.tokenizer,
        row_tokens=config.data.row_tokens,
        held_out_share=config.data.held_out_share,
    )
    held_out_rows = list(packing.every_row(held_out, **shape))
    batches = packing.packed(train, passes=config.data.passes, seed=config.seed, **shape)
    expected = packing.expected_batches(train, passes=config.data.passes, **shape)
    total_steps = min(expected, config.most_steps) if config.most_steps else expected

    try:
        schedule = optimizer.schedule(total_steps=total_steps, **config.schedule)
    except ValueError as error:
        raise RunError(f"config.schedule: {error}") from error
    transform = optimizer.build(schedule, **config.optimizer)
    objective = objectives.cross_entropy(
        policy.config, compute_dtype=jnp.dtype(config.policy.update_dtype), **config.objective
    )
    update, evaluate = step.make_update(objective, transform), step.make_evaluation(objective)
    state, leader, number, lines = step.init(policy.adapter, transform), best.nothing_yet(policy.adapter), 0, []

    with Checkpointer(directory.checkpoints) as checkpoints, progress.bar("sft", total_steps, "step") as bar:
        if (found := checkpoints.restore((state, leader))) is not None:
            number, (state, leader), lines = found.step, found.state, found.meta["lines"]
            batches.set_state(found.meta["batches"])
        bar.update(number)
        with MetricsLog(directory.metrics, lines) as log:
            while number < total_steps and leader.evaluations_since < config.patience:
                tokens, clock_s = 0, time.monotonic()
                for batch in packing.take(batches, min(config.evaluate_every, total_steps - number)):
                    rows = packing.to_rows(batch, rows=config.data.rows, micro_batches=config.micro_batches)
                    state, metrics = update(state, policy.params, (), rows)
                    tokens, number = tokens + int(np.count_nonzero(batch["tokens_segment_ids"])), number + 1
                    bar.update()
                if not tokens:
                    break  # the corpus is through
                line = {"step": number, **{name: float(value) for name, value in metrics.items()}}  # waits for them
                if not math.isfinite(line["loss"]):
                    checkpoints.save(number, (state, leader), {"batches": batches.get_state(), "lines": lines})
                    raise RunError(_not_finite(number, line["loss"]))
                line |= {"tokens_per_s": tokens / (time.monotonic() - clock_s), "rate": float(schedule(number - 1))}
                line["held_out_loss"] = _mean_loss(evaluate, state.trainable, policy.params, held_out_rows)
                leader = leader.after(line["held_out_loss"], state.trainable)
                lines.append(line)
                checkpoints.save(number, (state, leader), {"batches": batches.get_state(), "lines": lines})
                log.append(line)
                bar.set_postfix_str(f"held-out {line['held_out_loss']:.4f}, {line['tokens_per_s']:,.0f} tokens/s")
    if not lines:
        raise RunError(f"the corpus fills no batch of {config.data.rows} rows: enlarge it, or lower config.data.rows")
    _write(config, directory, policy.base_model, leader, lines, seconds=time.monotonic() - started_s)


def _not_finite(step: int, loss: float) -> str:
    return (
        f"step {step}: the loss is {loss:g}, so its update was left out. A checkpoint holds what was learnt before: the"
        " same command goes on behind this batch; for a lower config.schedule.peak begin again with --fresh"
    )


def _mean_loss(evaluate: Callable, trainable: lora.Adapter, params: dict, batches: Sequence) -> float:
    """Mean loss per token over all batches."""
    totals = [evaluate(trainable, params, (), rows)["loss"] for rows in batches]
    return float(sum(total.sum for total in totals) / sum(total.denominator for total in totals))


def _write(
    config: ConfigDict, directory: RunDirectory, base_model: str, leader: Best, lines: Sequence[dict], *, seconds: float
) -> None:
    """The adapter with the lowest held-out loss, its figures, and last the summary, which marks the run as finished."""
    for place in (directory.adapter, Path(config.out)) if config.out else (directory.adapter,):
        lora.save(place, leader.trainable, base_model)
        figures = {"config": config.to_dict(), "held_out_loss": float(leader.loss), "seconds": seconds, "log": lines}
        write_whole(place / "training.json", [json.dumps(figures, indent=1), "\n"])
    nothing_judged = summary.Summary(
        config=config.name, device="", size="", iterations=lines[-1]["step"], seconds=round(seconds, 1), samples=0,
        ok=0, success_rate=None, novel_ok=0, geomean_speedup=None, tasks=(),
    )  # fmt: skip
    write_whole(directory.summary, [json.dumps(dataclasses.asdict(nothing_judged), indent=2), "\n"])
