"""RMSNorm."""

import jax
import jax.numpy as jnp


def rms_norm(x: jax.Array, weight: jax.Array, epsilon: float, axis: int = -1) -> jax.Array:
    """x scaled to mean square 1 along `axis`, then by weight; statistics in float32."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=axis, keepdims=True) + epsilon)
    along = weight if axis == -1 else jnp.expand_dims(weight, range(1, -axis))
    return wide.astype(x.dtype) * jnp.broadcast_to(along, x.shape)
