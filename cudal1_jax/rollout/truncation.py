"""Which tokens may be drawn: temperature, top-k, top-p and min-p, in this order, without sorting the vocabulary.

Sorting 49,152 logits costs more than a layer of the model on a CPU. Every rule here is a threshold; tokens that tie
with it are kept, so the result does not depend on the order of tokens.
"""

import jax
import jax.numpy as jnp

EXCLUDED = -1e30  # finite, so that differences of log-probs stay numbers


def scale(logits: jax.Array, temperature: float) -> jax.Array:
    """logits [B, V] divided by the temperature, which is above zero."""
    return logits if temperature == 1.0 else logits / temperature


def top_k(logits: jax.Array, k: int) -> jax.Array:
    """Keeps the k largest logits of each row [B, V], and those equal to the k-th."""
    kth = jax.lax.top_k(logits, min(k, logits.shape[-1]))[0][:, -1:]
    return jnp.where(logits >= jnp.broadcast_to(kth, logits.shape), logits, EXCLUDED)


def min_p(logits: jax.Array, fraction: float) -> jax.Array:
    """Keeps tokens at least `fraction` as likely as the likeliest of their row."""
    bound = jnp.max(logits, axis=-1, keepdims=True) + jnp.log(fraction).astype(logits.dtype)
    return jnp.where(logits >= jnp.broadcast_to(bound, logits.shape), logits, EXCLUDED)


def top_p(logits: jax.Array, mass: float) -> jax.Array:
    """Keeps the likeliest tokens of each row that together have at least `mass`: the smallest such set, and ties.

    The threshold is found by bisection on the bits of the probabilities: positive floats are ordered as their bits
    are, so 31 halvings find it exactly.
    """
    probabilities = jax.nn.softmax(logits, axis=-1)

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds  # the set above `low` has the mass, the set above `high` has not; [B, 1]
        middle = low + (high - low) // 2
        threshold = jax.lax.bitcast_convert_type(middle, jnp.float32)
        inside = probabilities >= jnp.broadcast_to(threshold, probabilities.shape)
        enough = jnp.sum(jnp.where(inside, probabilities, 0.0), axis=-1, keepdims=True) >= mass
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    largest = jax.lax.bitcast_convert_type(jnp.max(probabilities, axis=-1, keepdims=True), jnp.int32)
    low, _ = jax.lax.fori_loop(0, 31, halve, (jnp.zeros_like(largest), largest + 1))
    threshold = jax.lax.bitcast_convert_type(low, jnp.float32)
    return jnp.where(probabilities >= jnp.broadcast_to(threshold, logits.shape), logits, EXCLUDED)
