"""Which tokens may be drawn: top-k, top-p and min-p, each a threshold on the logits, found without sorting them.

Sorting or `lax.top_k` of 8 x 49,152 logits takes as long as a whole decoding step of a small model on a CPU. Tokens
that tie with a threshold are kept, so that the result does not depend on the order of tokens.
"""

import jax
import jax.numpy as jnp

from cudal1_jax.rollout.options import SamplingOptions

EXCLUDED = -1e30  # finite, so that differences of log-probs stay numbers


def allowed(logits: jax.Array, options: SamplingOptions) -> jax.Array:
    """Logits [B, V] of the distribution that is drawn from; each rule sees what those before it have left."""
    kept = logits if options.temperature == 1 else logits / options.temperature
    if options.top_k is not None:
        kept = top_k(kept, options.top_k)
    if options.top_p < 1:
        kept = top_p(kept, options.top_p)
    if options.min_p > 0:
        kept = min_p(kept, options.min_p)
    return kept


def top_k(logits: jax.Array, k: int) -> jax.Array:
    """Keeps the k largest logits of each row [B, V], and those equal to the k-th."""
    return _keep(logits, _threshold(logits, jnp.ones_like(logits), float(min(k, logits.shape[-1]))))


def top_p(logits: jax.Array, mass: float) -> jax.Array:
    """Keeps the smallest set of likeliest tokens of each row whose probabilities add up to `mass`, and ties."""
    return _keep(logits, _threshold(logits, jax.nn.softmax(logits, axis=-1), mass))


def min_p(logits: jax.Array, fraction: float) -> jax.Array:
    """Keeps tokens at least `fraction` as likely as the likeliest of their row."""
    return _keep(logits, jnp.max(logits, axis=-1, keepdims=True) + jnp.log(fraction).astype(logits.dtype))


def _keep(logits: jax.Array, threshold: jax.Array) -> jax.Array:
    return jnp.where(logits >= jnp.broadcast_to(threshold, logits.shape), logits, EXCLUDED)


def _threshold(logits: jax.Array, weights: jax.Array, wanted: float) -> jax.Array:
    """Largest value [B, 1] such that the weights of the logits at or above it add up to `wanted`, or the smallest
    logit.

    Bisection on the bits: as whole numbers they are ordered like the floats (after `_ordered`), so 32 halvings are
    exact.
    """

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds  # at or above `low` lies enough, at or above `high` too little
        middle = (low & high) + ((low ^ high) >> 1)  # their mean, without overflow
        inside = logits >= jnp.broadcast_to(_float(middle), logits.shape)
        enough = jnp.sum(jnp.where(inside, weights, 0.0), axis=-1, keepdims=True) >= wanted
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    lowest = _ordered(jnp.min(logits, axis=-1, keepdims=True))
    highest = _ordered(jnp.max(logits, axis=-1, keepdims=True))
    return _float(jax.lax.fori_loop(0, 32, halve, (lowest, highest + 1))[0])


def _ordered(x: jax.Array) -> jax.Array:
    """int32 in the order of the float32 numbers; its own inverse on the bits, since the sign bit is left alone."""
    return _flip(jax.lax.bitcast_convert_type(x, jnp.int32))


def _float(ordered: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(_flip(ordered), jnp.float32)


def _flip(bits: jax.Array) -> jax.Array:
    """Below zero a larger magnitude means a smaller number: turn those bits over."""
    return bits ^ ((bits >> 31) & jnp.int32(0x7FFFFFFF))
