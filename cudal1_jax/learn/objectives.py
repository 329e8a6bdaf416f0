"""The objectives of the stages: which log-probs go into which loss. Built once, pure afterwards.

The trained value is a LoRA adapter over frozen parameters, or (with `full=True`) the parameters themselves. It is
float32; `compute_dtype` is what the matrix products run in, and frozen parameters come in that dtype already.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from cudal1_jax.learn import logprobs, losses, values
from cudal1_jax.learn.batch import Completions, PackedRows, Prompts
from cudal1_jax.learn.logprobs import CompletionScores
from cudal1_jax.learn.losses import KL, Aggregate, Ratio, Total
from cudal1_jax.learn.step import Objective, PyTree
from cudal1_jax.learn.values import ActorCritic
from cudal1_jax.policy import decoder
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.decoder import KeyValues, Remat

Encoding = tuple[KeyValues, jax.Array]  # the prompts' keys and values [L, N, K, P, d], last hidden states [N, D]
Scorer = Callable[[PyTree, PyTree, Prompts, Completions], CompletionScores]


def grpo(
    config: DecoderConfig,
    *,
    clip_low: float,
    clip_high: float,
    kl: KL,
    kl_weight: float,
    aggregate: Aggregate,
    temperature: float,
    ratio: Ratio = losses.token_log_ratio,
    importance_cap: float | None = None,
    entropy_weight: float = 0.0,
    compute_dtype: jnp.dtype = jnp.float32,
    chunk: int = 256,
    remat: Remat = "none",
    full: bool = False,
) -> Objective:
    """GRPO and its relatives (`losses.grpo` says which arguments make which) over `Prompts` and `Completions`.

    Where `rows.old_logprobs` is None the old policy is the present one (one update per rollout): the ratio is 1, its
    gradient is not 0, and no further forward pass is needed. `importance_cap` weighs each token by
    min(pi_old / pi_sampler, cap), against the gap between sampler and trainer. `entropy_weight` rewards entropy.
    Reports: kl, clip_fraction, entropy, sampler_gap (mean |log pi - log pi_sampler|).
    """
    encode = _encode_prompts(config, compute_dtype, remat, full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, remat, full, entropy_weight != 0.0)
    surrogate = _surrogate(
        clip_low=clip_low, clip_high=clip_high, kl=kl, kl_weight=kl_weight, aggregate=aggregate, ratio=ratio,
        importance_cap=importance_cap, entropy_weight=entropy_weight,
    )  # fmt: skip

    def loss(
        trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions
    ) -> tuple[Total, dict[str, Total]]:
        return surrogate(score(trainable, frozen, encoding, prompts, rows), rows, rows.advantages)

    return Objective(encode, loss)


def ppo(
    config: DecoderConfig,
    *,
    clip_low: float,
    clip_high: float,
    kl: KL,
    kl_weight: float,
    aggregate: Aggregate,
    temperature: float,
    discount: float,
    gae_decay: float,
    value_clip: float,
    value_weight: float,
    importance_cap: float | None = None,
    entropy_weight: float = 0.0,
    compute_dtype: jnp.dtype = jnp.float32,
    chunk: int = 256,
    remat: Remat = "none",
    full: bool = False,
) -> Objective:
    """PPO with a critic: the trained value is a `values.ActorCritic`, and `rows.advantages` are rewards of completions.

    Advantages of tokens come from `values.gae`; `value_weight` times the clipped loss of the values is added. Where
    `rows.old_values` is None they are the present ones. The rest is as in `grpo`, which see. Reports value_loss too.
    Schulman et al. 2017, https://arxiv.org/abs/1707.06347. ValueError, when traced: there is no critic.
    """
    encode = _encode_prompts(config, compute_dtype, remat, full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, remat, full, entropy_weight != 0.0)
    surrogate = _surrogate(
        clip_low=clip_low, clip_high=clip_high, kl=kl, kl_weight=kl_weight, aggregate=aggregate,
        ratio=losses.token_log_ratio, importance_cap=importance_cap, entropy_weight=entropy_weight,
    )  # fmt: skip

    def loss(
        trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions
    ) -> tuple[Total, dict[str, Total]]:
        scores = score(trainable, frozen, encoding, prompts, rows)
        if scores.values is None:
            raise ValueError("PPO trains an actor with a critic: begin with values.with_critic(actor, width)")
        old = jax.lax.stop_gradient(scores.values) if rows.old_values is None else rows.old_values
        advantages, returns = values.gae(rows.advantages, old, rows.mask, discount=discount, decay=gae_decay)
        total, reports = surrogate(scores, rows, advantages)
        errors = values.clipped_value_loss(scores.values, old, returns, clip=value_clip)
        reports["value_loss"] = losses.token_mean(jax.lax.stop_gradient(errors), rows.mask)
        return _plus(total, value_weight, aggregate(errors, rows.mask)), reports

    return Objective(encode, loss)


def reinforce(
    config: DecoderConfig,
    *,
    aggregate: Aggregate,
    temperature: float,
    compute_dtype: jnp.dtype = jnp.float32,
    chunk: int = 256,
    remat: Remat = "none",
    full: bool = False,
) -> Objective:
    """REINFORCE over `Prompts` and `Completions`, advantages as given. Reports entropy and sampler_gap."""
    encode = _encode_prompts(config, compute_dtype, remat, full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, remat, full, False)

    def loss(
        trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions
    ) -> tuple[Total, dict[str, Total]]:
        scores = score(trainable, frozen, encoding, prompts, rows)
        total = losses.reinforce(scores.logprobs, rows.advantages, rows.mask, aggregate=aggregate)
        return total, _distribution(scores, rows)

    return Objective(encode, loss)


def cross_entropy(
    config: DecoderConfig,
    *,
    compute_dtype: jnp.dtype = jnp.float32,
    chunk: int = 256,
    remat: Remat = "none",
    fused_attention: bool = False,
    full: bool = False,
) -> Objective:
    """Next-token cross-entropy over `PackedRows`; nothing is shared between rows. `fused_attention`: on a GPU."""

    def loss(
        trainable: PyTree, frozen: PyTree, encoding: tuple, shared: tuple, rows: PackedRows
    ) -> tuple[Total, dict[str, Total]]:
        params, adapter = _policy(trainable, frozen, compute_dtype, full)
        present = logprobs.next_token_logprobs(
            config, params, adapter, rows.tokens, rows.positions, rows.segment_ids, rows.targets, rows.mask,
            chunk=chunk, remat=remat, fused_attention=fused_attention, table_is_trained=full,
        )  # fmt: skip
        return losses.cross_entropy(present, rows.mask), {}

    return Objective(lambda trainable, frozen, shared: (), loss)


def make_scorer(
    config: DecoderConfig,
    *,
    temperature: float,
    compute_dtype: jnp.dtype = jnp.float32,
    chunk: int = 256,
    full: bool = False,
) -> Scorer:
    """The jitted score(trainable, frozen, *parts) -> arrays [S, M, B, T], forward only; parts as of `batch.split`.

    With the values the stage began with (base + its first adapter) these are the reference log-probs.
    """
    encode = _encode_prompts(config, compute_dtype, "none", full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, "none", full, False)

    def scored(trainable: PyTree, frozen: PyTree, prompts: Prompts, rows: Completions) -> CompletionScores:
        def of_slice(part: tuple[Prompts, Completions]) -> CompletionScores:
            encoding = encode(trainable, frozen, part[0])
            return jax.lax.map(lambda micro: score(trainable, frozen, encoding, part[0], micro), part[1])

        return jax.lax.map(of_slice, (prompts, rows))

    return jax.jit(scored)


def _surrogate(
    *,
    clip_low: float,
    clip_high: float,
    kl: KL,
    kl_weight: float,
    aggregate: Aggregate,
    ratio: Ratio,
    importance_cap: float | None,
    entropy_weight: float,
) -> Callable[[CompletionScores, Completions, jax.Array], tuple[Total, dict[str, Total]]]:
    """(scores, rows, advantages [B] or [B, T]) -> loss of the policy, and what is reported."""
    clip = {"clip_low": clip_low, "clip_high": clip_high}

    def loss(scores: CompletionScores, rows: Completions, advantages: jax.Array) -> tuple[Total, dict[str, Total]]:
        fixed = jax.lax.stop_gradient(scores.logprobs)
        old = fixed if rows.old_logprobs is None else rows.old_logprobs
        reference = jnp.where(jnp.isnan(rows.reference_logprobs), fixed, rows.reference_logprobs)
        weights = None
        if importance_cap is not None:
            weights = losses.truncated_importance(ratio(old, rows.sampler_logprobs, rows.mask), cap=importance_cap)
        total = losses.grpo(
            scores.logprobs, old, reference, advantages, rows.mask,
            **clip, kl=kl, kl_weight=kl_weight, aggregate=aggregate, ratio=ratio, weights=weights,
        )  # fmt: skip
        active = losses.clip_active(ratio(fixed, old, rows.mask), losses.per_token(advantages), **clip)
        return _plus(total, -entropy_weight, aggregate(scores.entropy, rows.mask)), {
            "kl": losses.token_mean(losses.kl_k3(fixed, reference), rows.mask),
            "clip_fraction": losses.token_mean(active, rows.mask),
            **_distribution(scores, rows),
        }

    return loss


def _distribution(scores: CompletionScores, rows: Completions) -> dict[str, Total]:
    """Means over tokens that tell whether the policy still explores, and whether the sampler is the policy."""
    logprobs, entropy = jax.lax.stop_gradient((scores.logprobs, scores.entropy))
    return {
        "entropy": losses.token_mean(entropy, rows.mask),
        "sampler_gap": losses.token_mean(jnp.abs(logprobs - rows.sampler_logprobs), rows.mask),
    }


def _plus(total: Total, weight: float, other: Total) -> Total:
    """total + weight * other, for two totals of one aggregate and one mask: their denominators are equal."""
    return total if weight == 0.0 else Total(total.sum + weight * other.sum, total.denominator)


def _policy(trainable: PyTree, frozen: PyTree, compute_dtype: jnp.dtype, full: bool) -> tuple[PyTree, PyTree]:
    """(params, adapter) in the compute dtype; uncast float32 adapters would drag bf16 products to float32."""
    cast = jax.tree.map(lambda x: x.astype(compute_dtype), values.actor_of(trainable))
    return (cast, None) if full else (frozen, cast)


def _encode_prompts(
    config: DecoderConfig, compute_dtype: jnp.dtype, remat: Remat, full: bool
) -> Callable[[PyTree, PyTree, Prompts], Encoding]:
    def encode(trainable: PyTree, frozen: PyTree, prompts: Prompts) -> Encoding:
        params, adapter = _policy(trainable, frozen, compute_dtype, full)
        return decoder.prefill(config, params, prompts.tokens, prompts.lengths, adapter=adapter, remat=remat)

    return encode


def _completion_scorer(
    config: DecoderConfig,
    compute_dtype: jnp.dtype,
    temperature: float,
    chunk: int,
    remat: Remat,
    full: bool,
    entropy_gradient: bool,
) -> Callable[[PyTree, PyTree, Encoding, Prompts, Completions], CompletionScores]:
    def score(
        trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions
    ) -> CompletionScores:
        params, adapter = _policy(trainable, frozen, compute_dtype, full)
        critic = functools.partial(values.predict, trainable) if isinstance(trainable, ActorCritic) else None
        prefix, last_hidden = encoding
        return logprobs.completion_scores(
            config, params, adapter, prefix, last_hidden, prompts.lengths, rows.tokens, rows.mask,
            temperature=temperature, chunk=chunk, remat=remat, row_tokens=rows.row_tokens, table_is_trained=full,
            entropy_gradient=entropy_gradient, critic=critic,
        )  # fmt: skip

    return score
