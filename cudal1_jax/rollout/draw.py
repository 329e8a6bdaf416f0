"""Draws one token per row from logits, with one uniform number per row."""

import jax
import jax.numpy as jnp

from cudal1_jax.rollout import truncation
from cudal1_jax.rollout.options import SamplingOptions

SPAN = 256  # tokens per span of the two-level search


def uniforms(keys: jax.Array, positions: jax.Array) -> jax.Array:
    """One number in [0, 1) per row [B] from the row's own key [B] and position [B] alone, whatever else is in the
    batch."""
    return jax.vmap(lambda key, position: jax.random.uniform(jax.random.fold_in(key, position), ()))(keys, positions)


def tokens(logits: jax.Array, uniform: jax.Array, options: SamplingOptions) -> tuple[jax.Array, jax.Array]:
    """Tokens [B] drawn from logits [B, V] by the options, and their log-probs in the distribution drawn from."""
    if options.temperature == 0:
        token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return token, jnp.zeros(token.shape)
    allowed = truncation.allowed(logits, options)
    token = invert(allowed, uniform)
    chosen = jnp.take_along_axis(allowed, token[:, None], axis=1)[:, 0]
    return token, chosen - jax.nn.logsumexp(allowed, axis=-1)


def invert(logits: jax.Array, uniform: jax.Array) -> jax.Array:
    """The token [B] at which each row's cumulative probability passes `uniform` [B]; logits [B, V].

    A row needs one uniform number instead of the V Gumbel numbers of the usual argmax trick, and two short cumulative
    sums, over spans and inside one span, instead of a long one.
    """
    B, V = logits.shape
    spans = -(-V // SPAN)
    weights = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
    weights = jnp.pad(weights, ((0, 0), (0, spans * SPAN - V))).reshape(B, spans, SPAN)
    per_span = jnp.sum(weights, axis=-1)
    before = jnp.cumsum(per_span, axis=-1)
    target = uniform * before[:, -1]
    span = _first_above(before, target, per_span)
    rest = target - jnp.take_along_axis(before - per_span, span[:, None], axis=1)[:, 0]
    inside = jnp.take_along_axis(weights, span[:, None, None], axis=1)[:, 0]
    return (span * SPAN + _first_above(jnp.cumsum(inside, axis=-1), rest, inside)).astype(jnp.int32)


def _first_above(cumulative: jax.Array, target: jax.Array, weights: jax.Array) -> jax.Array:
    """First index [B] whose cumulative weight exceeds the target; that index has weight, since the sum rose there.

    Where rounding leaves none, the heaviest index: never one without weight.
    """
    above = cumulative > target[:, None]
    return jnp.where(jnp.any(above, axis=-1), jnp.argmax(above, axis=-1), jnp.argmax(weights, axis=-1))
