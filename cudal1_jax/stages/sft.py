"""Stage 1, supervised fine-tuning: the policy learns from a generated corpus to write CUDA that compiles and is right.

corpus -> tokens -> packed rows -> update -> held-out loss -> checkpoint -> adapter

Only the assistant's words are learnt; requests are read. The held-out loss is that of examples whose chain of steps is in
no training example; the adapter that had the lowest is written, and training stops early where it no longer falls.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from cudal1_jax.corpus import folder
from cudal1_jax.learn import best, objectives, optimizer, packing, step
from cudal1_jax.learn.checkpoint import Checkpointer
from cudal1_jax.learn.packing import Tokens
from cudal1_jax.policy import lora
from cudal1_jax.policy.tokenizer import Tokenizer
from cudal1_jax.report import progress, run_directory, summary
from cudal1_jax.report.metrics import MetricsLog
from cudal1_jax.report.run_directory import RunDirectory, RunError
from cudal1_jax.stages import policy as policies


def run(config: ConfigDict, directory: RunDirectory, load_policy: Callable = policies.load) -> None:
    """Begin or continue the training of `config` in `directory`: adapter, figures and summary are there at the end.

    RunError: no corpus, no model, or nothing to train on; the text says what to do, and nothing recorded is lost.
    """
    started_s = time.monotonic()
    policy = load_policy(seed=config.seed, **config.policy)
    train, held_out = examples(config.data, policy.tokenizer)
    shape = {"row_tokens": config.data.row_tokens, "rows": config.data.rows}
    batches = packing.packed(train, passes=config.data.passes, seed=config.seed, **shape)
    held_out_rows = list(packing.every_row(held_out, **shape))
    expected_steps = packing.expected_batches(train, passes=config.data.passes, **shape)

    schedule = optimizer.schedule(total_steps=expected_steps, **config.schedule)
    transform = optimizer.build(schedule, **config.optimizer)
    objective = objectives.cross_entropy(
        policy.config, compute_dtype=jnp.dtype(config.policy.update_dtype), **config.objective
    )
    update, evaluate = step.make_update(objective, transform), step.make_evaluation(objective)
    state, leader = step.init(policy.adapter, transform), best.nothing_yet(policy.adapter)

    with Checkpointer(directory.checkpoints) as checkpoints, progress.bar("sft", expected_steps, "step") as bar:
        done, log_rows = 0, []
        if (found := checkpoints.restore((state, leader))) is not None:
            done, (state, leader), log_rows = found.step, found.state, found.meta["log"]
            batches.set_state(found.meta["batches"])
        bar.update(done)
        with MetricsLog(directory.metrics, log_rows) as log:
            clock_s, tokens = time.monotonic(), 0
            for number, batch in enumerate(batches, done + 1):
                rows = packing.to_rows(batch, rows=config.data.rows, micro_batches=config.micro_batches)
                state, metrics = update(state, policy.params, (), rows)
                tokens += np.count_nonzero(batch["tokens_segment_ids"])
                bar.update()
                if number % config.evaluate_every:
                    continue
                row = {
                    "step": number,
                    **{name: float(value) for name, value in metrics.items()},
                }  # waits for the device
                row |= {"tokens_per_s": tokens / (time.monotonic() - clock_s), "rate": float(schedule(number - 1))}
                row["held_out_loss"] = mean_loss(evaluate, state.trainable, policy.params, held_out_rows)
                leader = leader.after(row["held_out_loss"], state.trainable)
                log.append(row)
                log_rows.append(row)
                checkpoints.save(number, (state, leader), {"batches": batches.get_state(), "log": log_rows})
                bar.set_postfix_str(f"held-out {row['held_out_loss']:.4f}, {row['tokens_per_s']:,.0f} tokens/s")
                if leader.evaluations_since >= config.patience:
                    break
                clock_s, tokens = time.monotonic(), 0
    if not log_rows:
        raise RunError(
            f"the corpus gives fewer than {config.evaluate_every} batches of {config.data.rows} rows: make it larger, or "
            "lower config.data.rows or config.evaluate_every"
        )
    write(config, directory, leader, log_rows, seconds=time.monotonic() - started_s)


def examples(data: ConfigDict, tokenizer: Tokenizer) -> tuple[list[Tokens], list[Tokens]]:
    """(training, held-out) examples of a corpus: a chain of steps is in one of them only. RunError: there are none."""
    try:
        found = list(folder.read_examples(Path(data.corpus)))
    except (folder.CorpusError, OSError) as error:
        raise RunError(f"config.data.corpus: {error}") from error
    halves: tuple[list[Tokens], list[Tokens]] = ([], [])
    for each in progress.track(found, "tokens", len(found), "example"):
        completion = (*tokenizer.encode(each.completion), tokenizer.eos_id)
        tokens = Tokens(tuple(tokenizer.render_chat(each.prompt)), completion)
        if packing.fits(tokens, data.row_tokens):
            halves[is_held_out(each.key, data.held_out_share)].append(tokens)
    if not all(halves):
        raise RunError(
            f"{data.corpus} gives {len(halves[0])} training and {len(halves[1])} held-out examples of at most "
            f"{data.row_tokens} tokens, both are needed: make a corpus with `python -m cudal1_jax.corpus "
            f"--out={data.corpus}`, or raise config.data.held_out_share"
        )
    return halves


def is_held_out(chain: str, share: float) -> bool:
    """Whether all examples of a chain of steps are kept for the held-out loss; the same in every run."""
    return int.from_bytes(hashlib.sha256(chain.encode()).digest()[:4]) < share * 2**32


def mean_loss(evaluate: Callable, trainable: lora.Adapter, params: dict, batches: Sequence) -> float:
    """Mean loss per token over all batches."""
    totals = [evaluate(trainable, params, (), rows)["loss"] for rows in batches]
    return float(sum(total.sum for total in totals) / sum(total.denominator for total in totals))


def write(
    config: ConfigDict, directory: RunDirectory, leader: best.Best, log: Sequence[dict], *, seconds: float
) -> None:
    """The adapter with the lowest held-out loss, its figures, and last the summary, which marks the run as finished."""
    for place in (directory.adapter, Path(config.out)) if config.out else (directory.adapter,):
        lora.save(place, leader.trainable, policies.BASE_MODEL)
        figures = {
            "config": config.to_dict(),
            "held_out_loss": float(leader.loss),
            "seconds": seconds,
            "log": list(log),
        }
        run_directory.write_whole(place / "training.json", json.dumps(figures, indent=1) + "\n")
    nothing_judged = summary.Summary(
        config=config.name, device="", size="", iterations=log[-1]["step"], seconds=round(seconds, 1), samples=0, ok=0,
        success_rate=None, novel_ok=0, geomean_speedup=None, tasks=(),
    )  # fmt: skip
    run_directory.write_whole(directory.summary, json.dumps(dataclasses.asdict(nothing_judged), indent=2) + "\n")
