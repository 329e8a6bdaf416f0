"""Losses of the learner, as per-token terms and ways to add them up; everything here is pure.

Shapes: log-probs and masks [B, T], advantages [B] or, where tokens differ, [B, T]; a mask is 1 where a completion's
token counts and 0 elsewhere. Every loss returns `Total(sum, denominator)` and not a mean: sums and denominators of
micro-batches can be added, means of unequal micro-batches cannot.
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
Ratio = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]  # (logprobs, other_logprobs, mask) -> log-ratio [B, T]


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


def per_token(advantages: jax.Array) -> jax.Array:
    """Advantages of sequences [B] as [B, 1], those of tokens [B, T] as they are."""
    return advantages if advantages.ndim == 2 else advantages[:, None]


def token_log_ratio(logprobs: jax.Array, other_logprobs: jax.Array, mask: jax.Array) -> jax.Array:
    """log of pi / pi_other of each token, clipped to +-20 so that its exponential stays finite. [B, T]"""
    return _limited(logprobs - other_logprobs)


def sequence_log_ratio(logprobs: jax.Array, other_logprobs: jax.Array, mask: jax.Array) -> jax.Array:
    """log of (pi(y) / pi_other(y))^(1 / |y|) of each sequence y, the same at all its tokens: GSPO's ratio. [B, T]

    The geometric mean over the length: one token that became unlikely does not clip alone, and its noise is averaged.
    It stays near 1, hence the paper's clips of 3e-4 and 4e-4. Zheng et al. 2025, https://arxiv.org/abs/2507.18071.
    """
    lengths = jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1.0)
    mean = jnp.sum(_masked(logprobs - other_logprobs, mask), axis=1, keepdims=True) / lengths
    return jnp.broadcast_to(_limited(mean), logprobs.shape)


def clipped_surrogate(log_ratio: jax.Array, advantages: jax.Array, *, clip_low: float, clip_high: float) -> jax.Array:
    """PPO's clipped objective as a loss: -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A). [B, T]

    log_ratio [B, T] is log rho, rho = pi / pi_old; advantages [B, T], or [B, 1] for all tokens of a sequence.
    `clip_high > clip_low` is DAPO's clip-higher, which lets rare tokens grow.
    Schulman et al. 2017, https://arxiv.org/abs/1707.06347; Yu et al. 2025, https://arxiv.org/abs/2503.14476.
    """
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1.0 - clip_low, 1.0 + clip_high)
    return -jnp.minimum(ratio * advantages, clipped * advantages)


def clip_active(log_ratio: jax.Array, advantages: jax.Array, *, clip_low: float, clip_high: float) -> jax.Array:
    """1 where the clip of `clipped_surrogate` stops the gradient, else 0. [B, T]"""
    ratio = jnp.exp(log_ratio)
    rising = (ratio > 1.0 + clip_high) & (advantages > 0)
    falling = (ratio < 1.0 - clip_low) & (advantages < 0)
    return (rising | falling).astype(jnp.float32)


def truncated_importance(log_ratio: jax.Array, *, cap: float) -> jax.Array:
    """min(pi_old / pi_sampler, cap): corrects for a sampler that is not quite the policy.

    Shape as of log_ratio. Truncation bounds the variance at the price of a small bias.
    Ionides 2008, https://doi.org/10.1198/106186008X320456; https://github.com/verl-project/verl/pull/2953
    """
    return jnp.minimum(jnp.exp(log_ratio), cap)


def without_overlong(mask: jax.Array, finished: jax.Array) -> jax.Array:
    """The mask without completions that were cut at the token limit: whether they were good is not known. [B, T]

    finished [B] is true where a completion ended by itself. DAPO's overlong filtering, https://arxiv.org/abs/2503.14476.
    """
    return mask * finished[:, None]


def kl_k1(logprobs: jax.Array, reference_logprobs: jax.Array) -> jax.Array:
    """log pi - log pi_ref per token: unbiased as a *value*, can be negative. [B, T]

    Its gradient is that of log pi alone, zero in expectation: good for a metric or inside a reward, not as a loss.
    """
    return _limited(logprobs - reference_logprobs)


def kl_k2(logprobs: jax.Array, reference_logprobs: jax.Array) -> jax.Array:
    """(log pi - log pi_ref)^2 / 2 per token: biased as a value, but on-policy its gradient is that of the KL. [B, T]"""
    return 0.5 * jnp.square(_limited(logprobs - reference_logprobs))


def kl_k3(logprobs: jax.Array, reference_logprobs: jax.Array) -> jax.Array:
    """pi_ref / pi - log(pi_ref / pi) - 1 per token: unbiased value, never negative; GRPO's choice. [B, T]

    http://joschu.net/blog/kl-approx.html
    """
    inverse = _limited(reference_logprobs - logprobs)
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
    ratio: Ratio = token_log_ratio,
    weights: jax.Array | None = None,
) -> Total:
    """The clipped surrogate plus `kl_weight` times a KL penalty to the reference policy.

    What the literature tells apart is in the arguments. GRPO: `sequence_mean`, advantages `group_normalised`. Dr.GRPO:
    `constant_length_mean`, `group_centred`. DAPO: `token_mean`, clip_high > clip_low. GSPO: `sequence_log_ratio`,
    `sequence_mean`. PPO: advantages [B, T] of `values.gae`, `token_mean`, and the loss of the values apart.
    `old_logprobs`, `reference_logprobs` and `weights` (of `truncated_importance`, on the surrogate) are constants:
    gradients do not flow into them. Shao et al. 2024, https://arxiv.org/abs/2402.03300.
    """
    old_logprobs, reference_logprobs = jax.lax.stop_gradient((old_logprobs, reference_logprobs))
    log_ratio = ratio(logprobs, old_logprobs, mask)
    surrogate = clipped_surrogate(log_ratio, per_token(advantages), clip_low=clip_low, clip_high=clip_high)
    if weights is not None:
        surrogate = surrogate * jax.lax.stop_gradient(weights)
    return aggregate(surrogate + kl_weight * kl(logprobs, reference_logprobs), mask)


def reinforce(logprobs: jax.Array, advantages: jax.Array, mask: jax.Array, *, aggregate: Aggregate) -> Total:
    """REINFORCE: -A log pi. With a reward of 1 for a good program and 0 for a bad one, stage 2 of CUDA-L1.

    With `advantage.leave_one_out` it is RLOO. Williams 1992, https://doi.org/10.1007/BF00992696.
    """
    return aggregate(-logprobs * per_token(advantages), mask)


def cross_entropy(logprobs: jax.Array, mask: jax.Array) -> Total:
    """Mean negative log-likelihood of the tokens the mask keeps, each of equal weight."""
    return token_mean(-logprobs, mask)


def _limited(log_ratio: jax.Array) -> jax.Array:
    return jnp.clip(log_ratio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def _masked(per_token: jax.Array, mask: jax.Array) -> jax.Array:
    # where, not a product: a padding position may hold inf or nan, and 0 * inf is nan
    return jnp.where(mask > 0, per_token * mask, 0.0)
