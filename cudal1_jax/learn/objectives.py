"""The objectives of the stages: which log-probs go into which loss. Built once, pure afterwards.

The trained value is a LoRA adapter over frozen parameters, or (with `full=True`) the parameters themselves. It is
float32; `compute_dtype` is what the matrix products run in, and frozen parameters come in that dtype already.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from cudal1_jax.learn import logprobs, losses
from cudal1_jax.learn.batch import Completions, PackedRows, Prompts
from cudal1_jax.learn.losses import KL, Aggregate, Total
from cudal1_jax.learn.step import Objective, PyTree
from cudal1_jax.policy import decoder
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.decoder import KeyValues, Remat

Encoding = tuple[KeyValues, jax.Array]  # the prompts' keys and values [L, N, K, P, d], last hidden states [N, D]


def grpo(
    config: DecoderConfig,
    *,
    clip_low: float,
    clip_high: float,
    kl: KL,
    kl_weight: float,
    aggregate: Aggregate,
    temperature: float,
    on_policy: bool,
    importance_cap: float | None = None,
    compute_dtype: jnp.dtype = jnp.float32,
    chunk: int = 256,
    remat: Remat = "none",
    full: bool = False,
) -> Objective:
    """GRPO over `Prompts` and `Completions`.

    `on_policy`: the old policy is the present one (one update per rollout): the ratio is 1, its gradient is not 0, and
    no further forward pass is needed. Otherwise the sampler's log-probs are the old ones. `importance_cap` weighs each
    token by min(pi_old / pi_sampler, cap), against the gap between sampler and trainer.
    Reports: kl, clip_fraction, sampler_gap (mean |log pi - log pi_sampler| before this step).
    """
    encode = _encode_prompts(config, compute_dtype, remat, full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, remat, full)

    def loss(
        trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions
    ) -> tuple[Total, dict[str, Total]]:
        present = score(trainable, frozen, encoding, prompts, rows)
        fixed = jax.lax.stop_gradient(present)
        old = fixed if on_policy else rows.sampler_logprobs
        reference = jnp.where(jnp.isnan(rows.reference_logprobs), fixed, rows.reference_logprobs)
        weights = None
        if importance_cap is not None:
            weights = losses.truncated_importance(fixed, rows.sampler_logprobs, cap=importance_cap)
        clip = {"clip_low": clip_low, "clip_high": clip_high}
        total = losses.grpo(
            present, old, reference, rows.advantages, rows.mask,
            **clip, kl=kl, kl_weight=kl_weight, aggregate=aggregate, weights=weights,
        )  # fmt: skip
        return total, {
            "kl": losses.token_mean(losses.kl_k3(fixed, reference), rows.mask),
            "clip_fraction": losses.token_mean(losses.clip_active(fixed, old, rows.advantages, **clip), rows.mask),
            "sampler_gap": losses.token_mean(jnp.abs(fixed - rows.sampler_logprobs), rows.mask),
        }

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
    """REINFORCE over `Prompts` and `Completions`, advantages as given. Reports sampler_gap."""
    encode = _encode_prompts(config, compute_dtype, remat, full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, remat, full)

    def loss(
        trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions
    ) -> tuple[Total, dict[str, Total]]:
        present = score(trainable, frozen, encoding, prompts, rows)
        gap = jnp.abs(jax.lax.stop_gradient(present) - rows.sampler_logprobs)
        total = losses.reinforce(present, rows.advantages, rows.mask, aggregate=aggregate)
        return total, {"sampler_gap": losses.token_mean(gap, rows.mask)}

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
) -> Callable[[PyTree, PyTree, Prompts, Completions], jax.Array]:
    """The jitted score(trainable, frozen, *parts) -> log-probs [S, M, B, T], forward only; parts as of `batch.split`.

    With the values the stage began with (base + its first adapter) these are the reference log-probs.
    """
    encode = _encode_prompts(config, compute_dtype, "none", full)
    score = _completion_scorer(config, compute_dtype, temperature, chunk, "none", full)

    def scored(trainable: PyTree, frozen: PyTree, prompts: Prompts, rows: Completions) -> jax.Array:
        def of_slice(part: tuple[Prompts, Completions]) -> jax.Array:
            encoding = encode(trainable, frozen, part[0])
            return jax.lax.map(lambda micro: score(trainable, frozen, encoding, part[0], micro), part[1])

        return jax.lax.map(of_slice, (prompts, rows))

    return jax.jit(scored)


def _policy(trainable: PyTree, frozen: PyTree, compute_dtype: jnp.dtype, full: bool) -> tuple[PyTree, PyTree]:
    """(params, adapter) in the compute dtype; uncast float32 adapters would drag bf16 products to float32."""
    cast = jax.tree.map(lambda x: x.astype(compute_dtype), trainable)
    return (cast, None) if full else (frozen, cast)


def _encode_prompts(
    config: DecoderConfig, compute_dtype: jnp.dtype, remat: Remat, full: bool
) -> Callable[[PyTree, PyTree, Prompts], Encoding]:
    def encode(trainable: PyTree, frozen: PyTree, prompts: Prompts) -> Encoding:
        params, adapter = _policy(trainable, frozen, compute_dtype, full)
        return decoder.prefill(config, params, prompts.tokens, prompts.lengths, adapter=adapter, remat=remat)

    return encode


def _completion_scorer(
    config: DecoderConfig, compute_dtype: jnp.dtype, temperature: float, chunk: int, remat: Remat, full: bool
) -> Callable[[PyTree, PyTree, Encoding, Prompts, Completions], jax.Array]:
    def score(trainable: PyTree, frozen: PyTree, encoding: Encoding, prompts: Prompts, rows: Completions) -> jax.Array:
        params, adapter = _policy(trainable, frozen, compute_dtype, full)
        prefix, last_hidden = encoding
        return logprobs.completion_logprobs(
            config, params, adapter, prefix, last_hidden, prompts.lengths, rows.tokens, rows.mask,
            temperature=temperature, chunk=chunk, remat=remat, row_tokens=rows.row_tokens, table_is_trained=full,
        )  # fmt: skip

    return score
