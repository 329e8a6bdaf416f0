"""Losses of the learner, as per-token terms and ways to add them up; everything here is pure.

Shapes: log-probs and masks [B, T], advantages [B]; a mask is 1 where a completion's token counts and 0 elsewhere.
Every loss returns `Total(sum, denominator)` and not a mean: sums and denominators of micro-batches can be added, means
of unequal micro-batches cannot.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

LOG_RATIO_LIMIT = 20.0  # exp(20) = 4.9e8 is still far from float32's end, exp(89) is not


class Total(NamedTuple):
    """A mean before its division, so that totals of micro-batches add up to that of the batch."""

    sum: jax.Array  # scalar float32
    denominator: jax.Array  # scalar float32, independent of the parameters


Aggregate = Callable[[jax.Array, jax.Array], Total]  # (per_token [B, T], mask [B, T]) -> Total
KL = Callable[[jax.Array, jax.Array], jax.Array]  # (logprobs, reference_logprobs) -> per token [B, T]


def token_mean(per_token: jax.Array, mask: jax.Array) -> Total:
    """Every token weighs the same: sum over all tokens, denominator the number of tokens (DAPO)."""
    return Total(jnp.sum(_masked(per_token, mask)), jnp.sum(mask))


def sequence_mean(per_token: jax.Array, mask: jax.Array) -> Total:
    """Every sequence weighs the same: mean over its tokens, denominator the number of sequences (GRPO).

    A sequence without tokens (an empty or padding row) counts in neither.
    """
    lengths = jnp.sum(mask, axis=1)
    means = jnp.sum(_masked(per_token, mask), axis=1) / jnp.maximum(lengths, 1.0)
    return Total(jnp.sum(means), jnp.sum((lengths > 0).astype(jnp.float32)))


def constant_length_mean(tokens: int) -> Aggregate:
    """Every token weighs 1 / `tokens` whatever its sequence's length: Dr.GRPO, free of the length bias."""

    def aggregate(per_token: jax.Array, mask: jax.Array) -> Total:
        rows = jnp.sum((jnp.sum(mask, axis=1) > 0).astype(jnp.float32))
        return Total(jnp.sum(_masked(per_token, mask)), rows * tokens)

    return aggregate


def log_ratio(logprobs: jax.Array, other_logprobs: jax.Array) -> jax.Array:
    """log of pi / pi_other per token, clipped to +-20 so that its exponential stays finite. [B, T]"""
    return jnp.clip(logprobs - other_logprobs, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def clipped_surrogate(
    logprobs: jax.Array, old_logprobs: jax.Array, advantages: jax.Array, *, clip_low: float, clip_high: float
) -> jax.Array:
    """PPO's clipped objective per token as a loss: -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A). [B, T]

    rho = pi / pi_old; `clip_high > clip_low` is DAPO's clip-higher, which lets rare tokens grow.
    Schulman et al. 2017, https://arxiv.org/abs/1707.06347; Yu et al. 2025, https://arxiv.org/abs/2503.14476.
    """
    ratio = jnp.exp(log_ratio(logprobs, old_logprobs))
    clipped = jnp.clip(ratio, 1.0 - clip_low, 1.0 + clip_high)
    return -jnp.minimum(ratio * advantages[:, None], clipped * advantages[:, None])


def clip_active(
    logprobs: jax.Array, old_logprobs: jax.Array, advantages: jax.Array, *, clip_low: float, clip_high: float
) -> jax.Array:
    """1 where the clip of `clipped_surrogate` stops the gradient, else 0. [B, T]"""
    ratio = jnp.exp(log_ratio(logprobs, old_logprobs))
    rising = (ratio > 1.0 + clip_high) & (advantages[:, None] > 0)
    falling = (ratio < 1.0 - clip_low) & (advantages[:, None] < 0)
    return (rising | falling).astype(jnp.float32)


def truncated_importance(old_logprobs: jax.Array, sampler_logprobs: jax.Array, *, cap: float) -> jax.Array:
    """min(pi_old / pi_sampler, cap) per token: corrects for a sampler that is not quite the policy.

    [B, T]. Truncation bounds the variance at the price of a small bias. https://github.com/verl-project/verl/pull/2953
    """
    return jnp.minimum(jnp.exp(log_ratio(old_logprobs, sampler_logprobs)), cap)


def kl_k1(logprobs: jax.Array, reference_logprobs: jax.Array) -> jax.Array:
    """log pi - log pi_ref per token: unbiased as a *value*, can be negative. [B, T]

    Its gradient is that of log pi alone, zero in expectation: good for a metric or inside a reward, not as a loss.
    """
    return log_ratio(logprobs, reference_logprobs)


def kl_k2(logprobs: jax.Array, reference_logprobs: jax.Array) -> jax.Array:
    """(log pi - log pi_ref)^2 / 2 per token: biased as a value, but on-policy its gradient is that of the KL. [B, T]"""
    return 0.5 * jnp.square(log_ratio(logprobs, reference_logprobs))


def kl_k3(logprobs: jax.Array, reference_logprobs: jax.Array) -> jax.Array:
    """pi_ref / pi - log(pi_ref / pi) - 1 per token: unbiased value, never negative; GRPO's choice. [B, T]

    http://joschu.net/blog/kl-approx.html
    """
    inverse = log_ratio(reference_logprobs, logprobs)
    return jnp.expm1(inverse) - inverse  # expm1: exp(x) - 1 loses all digits near zero, where training lives


def grpo(
    logprobs: jax.Array,
    old_logprobs: jax.Array,
    reference_logprobs: jax.Array,
    advantages: jax.Array,
    mask: jax.Array,
    *,
    clip_low: float,
    clip_high: float,
    kl: KL,
    kl_weight: float,
    aggregate: Aggregate,
    weights: jax.Array | None = None,
) -> Total:
    """GRPO: the clipped surrogate plus `kl_weight` times a KL penalty to the reference policy.

    `old_logprobs`, `reference_logprobs` and `weights` (of `truncated_importance`, on the surrogate) are constants:
    gradients do not flow into them.
    """
    old_logprobs, reference_logprobs = jax.lax.stop_gradient((old_logprobs, reference_logprobs))
    surrogate = clipped_surrogate(logprobs, old_logprobs, advantages, clip_low=clip_low, clip_high=clip_high)
    if weights is not None:
        surrogate = surrogate * jax.lax.stop_gradient(weights)
    return aggregate(surrogate + kl_weight * kl(logprobs, reference_logprobs), mask)


def reinforce(logprobs: jax.Array, advantages: jax.Array, mask: jax.Array, *, aggregate: Aggregate) -> Total:
    """REINFORCE: -A log pi. With a reward of 1 for a good program and 0 for a bad one, stage 2 of CUDA-L1."""
    return aggregate(-logprobs * advantages[:, None], mask)


def cross_entropy(logprobs: jax.Array, mask: jax.Array) -> Total:
    """Mean negative log-likelihood of the tokens the mask keeps, each of equal weight."""
    return token_mean(-logprobs, mask)


def _masked(per_token: jax.Array, mask: jax.Array) -> jax.Array:
    # where, not a product: a padding position may hold inf or nan, and 0 * inf is nan
    return jnp.where(mask > 0, per_token * mask, 0.0)
