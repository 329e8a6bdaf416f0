"""The arrows reward, advantage and update: from the verdicts of an iteration to the next state of the learner."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from cudal1_jax.contrastive import reward
from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.learn import batch, losses, step, values, work
from cudal1_jax.learn.batch import Completions
from cudal1_jax.learn.logprobs import CompletionScores
from cudal1_jax.learn.objectives import Scorer
from cudal1_jax.learn.step import Objective, TrainState
from cudal1_jax.policy import lora, sharding
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.report import progress
from cudal1_jax.report.run_directory import RunDirectory
from cudal1_jax.stages.judging import Bench
from cudal1_jax.stages.objective import Advantage
from cudal1_jax.stages.policy import Policy, save_parameters
from evaluator.records import Verdict

Learn = Callable[[TrainState, Sequence[Prompt], Sequence[Sample], Sequence[float]], tuple[TrainState, dict[str, float]]]
"""(state, prompts, samples, advantages) -> (next state, metrics); the state passed in is used up"""


def build(
    policy: Policy,
    objective: Objective,
    optimizer: optax.GradientTransformation,
    trainable: Any,
    *,
    score: Scorer,
    reference: Any | None,
    epochs: int,
    mask_overlong: bool,
    micro_batches: int,
    prompt_bucket: int,
    completion_bucket: int,
    completion_tokens: int,
) -> tuple[Learn, TrainState]:
    """A function that learns from an iteration's samples, and the state with which a stage begins, of `trainable`.

    `reference`: the values whose policy the KL penalty compares with, None where the objective asks for none; they are
    those the stage began with, so that before the first update no pass is needed. `epochs`: updates on the same
    samples; with more than one, the policy of before the first is the old one of the ratios. `mask_overlong`:
    completions that were cut do not count. `micro_batches`: parts of a group that are differentiated one after another.
    Prompts, and the packed completions of a micro-batch, are padded to multiples of their buckets, in tokens, so that
    few shapes are compiled; a completion has at most `completion_tokens`.
    """
    mesh = sharding.mesh_of(policy.params)
    parts = 1 if mesh is None else sharding.rows(mesh)  # prompts that are encoded at a time
    trainable = trainable if mesh is None else sharding.place_whole(trainable, mesh)
    divided = None if mesh is None else jax.tree.map(lambda x: x.sharding, trainable)
    update = step.make_update(objective, optimizer, divided)
    full = not isinstance(values.actor_of(trainable), Adapter)
    pace = progress.Pace("updating", "token")

    def learn(
        state: TrainState, prompts: Sequence[Prompt], samples: Sequence[Sample], advantages: Sequence[float]
    ) -> tuple[TrainState, dict[str, float]]:
        if not any(advantages):  # as DAPO leaves out groups whose samples did equally well: nothing to tell them apart
            return state, {"learn/skipped": 1.0}
        shared = batch.prompts([policy.tokenizer.render_chat(p.text) for p in prompts], bucket=prompt_bucket)
        rows = _completions(samples, advantages, completion_tokens, mask_overlong)
        if not rows.mask.any():  # all of them were cut
            return state, {"learn/skipped": 1.0}
        tokens = int(np.sum(shared.lengths) + np.sum(rows.mask))
        lengths = np.asarray(rows.mask).sum(axis=1).reshape(len(prompts), -1)
        flops = work.update_flops(policy.config, shared.lengths.tolist(), lengths.tolist(), full=full)
        with pace.working(epochs * tokens), sharding.on(mesh):
            shared, rows = batch.split(
                shared, rows, slices=len(prompts) // parts, micro_batches=micro_batches, bucket=completion_bucket
            )
            if mesh is not None:
                shared, rows = sharding.place_rows(shared, mesh, axis=1), sharding.place_rows(rows, mesh, axis=2)
            rows = _scored(lambda values: score(values, policy.params, shared, rows), state, rows, reference, epochs)
            for _ in range(epochs):
                state, metrics = update(state, policy.params, shared, rows)
            learnt = {f"learn/{name}": float(value) for name, value in metrics.items()}
        devices = len(jax.tree.leaves(state.trainable)[0].sharding.device_set)
        learnt |= {"learn/tokens": float(epochs * tokens), "learn/flops_per_device": epochs * flops / devices}
        return state, {"learn/skipped": 0.0, **learnt}

    return learn, step.init(trainable, optimizer)


def _completions(
    samples: Sequence[Sample], advantages: Sequence[float], tokens: int, mask_overlong: bool
) -> Completions:
    rows = batch.completions(
        [sample.tokens.tolist() for sample in samples],
        advantages=advantages,
        sampler_logprobs=[sample.logprobs.tolist() for sample in samples],
        bucket=tokens,
    )
    if not mask_overlong:
        return rows
    finished = jnp.array([sample.finished for sample in samples])
    return dataclasses.replace(rows, mask=losses.without_overlong(rows.mask, finished))


def _scored(
    score: Callable[[Any], CompletionScores], state: TrainState, rows: Completions, reference: Any | None, epochs: int
) -> Completions:
    """The rows with log-probs of the reference and, for several epochs, of the present values, by `score` of either."""
    at_the_beginning = not int(state.step)  # then the reference is the present policy
    if epochs > 1:
        old = score(state.trainable)
        rows = dataclasses.replace(rows, old_logprobs=old.logprobs, old_values=old.values)
        if at_the_beginning:
            rows = dataclasses.replace(rows, reference_logprobs=old.logprobs)
    if reference is not None and not at_the_beginning:
        rows = dataclasses.replace(rows, reference_logprobs=score(reference).logprobs)
    return rows


def beginning(policy: Policy, *, full: bool) -> Any:
    """The values that a stage begins with: the adapter, or all parameters, float32, with the adapter merged in."""
    if not full:
        return policy.adapter
    wide = jax.tree.map(lambda x: x.astype(jnp.float32), policy.params)
    return lora.merge(wide, policy.adapter)


def reason_to_stop(config: ConfigDict, directory: RunDirectory, step: int, learnt: Mapping[str, float]) -> str | None:
    """Why there is no use in going on: the loss or its gradient is no number, or the policy is certain of every token.

    The text supposes that checkpoint and trained values of iteration `step` are saved before the run ends.
    """
    loss, norm = learnt.get("learn/loss", 0.0), learnt.get("learn/grad_norm", 0.0)
    entropy, floor = learnt.get("learn/entropy", math.inf), config.learn.entropy_floor
    whole, adapter = f"parameters={directory.model} --config.policy.adapter=", f"adapter={directory.adapter}"
    kept = (
        "What was learnt before is saved: the same command goes on from there, and a run of another name begins with it"
        f" by --config.policy.{whole if config.learn.full else adapter}"
    )
    if not (math.isfinite(loss) and math.isfinite(norm)):
        return (
            f"iteration {step + 1}: the loss is {loss:g} and the norm of its gradient {norm:g}, so this update was left"
            f" out. {kept}, say with a lower --config.learn.learning_rate than {config.learn.learning_rate:g}"
        )
    if entropy < floor:
        return (
            f"iteration {step + 1}: the policy's entropy is {entropy:.2g} nats a token, below"
            f" config.learn.entropy_floor ({floor:g}): it writes the same again and again, and nothing is left to"
            f" compare. {kept}, say with a higher --config.rollout.temperature"
        )
    return None


def save(directory: RunDirectory, policy: Policy, trainable: Any) -> None:
    """Write what was trained: an adapter as PEFT reads it, or all parameters by their names here."""
    actor = values.actor_of(trainable)
    if isinstance(actor, Adapter):
        lora.save(directory.adapter, actor, policy.base_model)
    else:
        save_parameters(directory.model, actor)


def keep(
    state: TrainState, prompts: Sequence[Prompt], samples: Sequence[Sample], advantages: Sequence[float]
) -> tuple[TrainState, dict[str, float]]:
    """No update: for modes that only sample."""
    return state, {}


def frozen_state(trainable: Any) -> TrainState:
    """The state of a stage that never updates."""
    return step.init(trainable, optax.identity())


def smoothed_rewards(
    bench: Bench,
    step_number: int,
    prompts: Sequence[Prompt],
    samples: Sequence[Sample],
    verdicts: Sequence[Verdict],
    *,
    window: int,
    sigma_min: float,
    clip: float,
) -> list[list[float]]:
    """For each prompt [N], the smoothed rewards of its samples [G]; the history ends with these samples themselves."""
    judged = bench.store.judged(end_step=step_number + 1)
    groups = []
    for prompt in prompts:
        group = [v for s, v in zip(samples, verdicts, strict=True) if s.prompt == prompt.prompt]
        smooth = reward.smooth(
            [reward.reward(verdict) for verdict in group],
            [reward.reward(e.verdict) for e in judged if e.task == prompt.task and e.verdict.ok],
            window=window,
            sigma_min=sigma_min,
            clip=clip,
        )
        groups.append(reward.fill_unjudged(smooth, group))
    return groups


def group_advantages(rewards: Sequence[Sequence[float]], advantage: Advantage) -> list[float]:
    """Advantages of the samples [N, G], in sample order."""
    return [float(value) for value in advantage(jnp.asarray(rewards, jnp.float32)).reshape(-1)]
