"""The arrows reward, advantage and update: from the verdicts of an iteration to the next state of the learner."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cudal1_jax.contrastive import reward
from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.learn import advantage, batch, step
from cudal1_jax.learn.batch import Completions, Prompts
from cudal1_jax.learn.step import Objective, TrainState
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.report import progress
from cudal1_jax.stages.judging import Bench
from cudal1_jax.stages.policy import Policy
from evaluator.records import Verdict

Reference = Callable[[Adapter, Any, Prompts, Completions], jax.Array]

Learn = Callable[[TrainState, Sequence[Prompt], Sequence[Sample], Sequence[float]], tuple[TrainState, dict[str, float]]]
"""(state, prompts, samples, advantages) -> (next state, metrics); the state passed in is used up"""


def build(
    policy: Policy,
    objective: Objective,
    optimizer: optax.GradientTransformation,
    *,
    reference: Reference | None,
    micro_batches: int,
    prompt_bucket: int,
    completion_bucket: int,
    completion_tokens: int,
) -> tuple[Learn, TrainState]:
    """A function that makes one update on an iteration's samples, and the state with which a stage begins.

    `reference`: log-probs under the policy that the stage began with, None where the objective asks for none; before
    the first update that is the policy itself. `micro_batches`: parts of a group that are differentiated one after
    another. Prompts, and the packed completions of a micro-batch, are padded to multiples of their buckets, in tokens,
    so that few shapes are compiled; a completion has at most `completion_tokens`.
    """
    update = step.make_update(objective, optimizer)
    pace = progress.Pace("updating", "token")

    def learn(
        state: TrainState, prompts: Sequence[Prompt], samples: Sequence[Sample], advantages: Sequence[float]
    ) -> tuple[TrainState, dict[str, float]]:
        if not any(advantages):  # as DAPO leaves out groups whose samples did equally well: nothing to tell them apart
            return state, {"learn/skipped": 1.0}
        shared = batch.prompts([policy.tokenizer.render_chat(p.text) for p in prompts], bucket=prompt_bucket)
        rows = batch.completions(
            [sample.tokens.tolist() for sample in samples],
            advantages=advantages,
            sampler_logprobs=[sample.logprobs.tolist() for sample in samples],
            bucket=completion_tokens,
        )
        with pace.working(int(np.sum(shared.lengths) + np.sum(rows.mask))):
            shared, rows = batch.split(
                shared, rows, slices=len(prompts), micro_batches=micro_batches, bucket=completion_bucket
            )
            if reference is not None and int(state.step):
                logprobs = reference(policy.adapter, policy.params, shared, rows)
                rows = dataclasses.replace(rows, reference_logprobs=logprobs)
            state, metrics = update(state, policy.params, shared, rows)
            learnt = {f"learn/{name}": float(value) for name, value in metrics.items()}
        return state, {"learn/skipped": 0.0, **learnt}

    return learn, step.init(policy.adapter, optimizer)


def keep(
    state: TrainState, prompts: Sequence[Prompt], samples: Sequence[Sample], advantages: Sequence[float]
) -> tuple[TrainState, dict[str, float]]:
    """No update: for modes that only sample."""
    return state, {}


def frozen_state(policy: Policy) -> TrainState:
    """The state of a stage that never updates."""
    return step.init(policy.adapter, optax.identity())


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


def group_advantages(rewards: Sequence[Sequence[float]]) -> list[float]:
    """Z-scores within each group, in sample order."""
    return [float(value) for value in advantage.group_normalised(jnp.asarray(rewards, jnp.float32)).reshape(-1)]
