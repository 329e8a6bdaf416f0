"""The critic of PPO: a linear head on the decoder's hidden states, its advantages and its loss.

Shapes: values, returns, advantages and masks [B, T]; a mask is 1 on a completion's tokens, from its first to its last.
The value at a token is what is expected before it is written, so it reads the hidden state of the token before.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ActorCritic:
    """Trained values of PPO, one pytree. Other losses train the actor alone, without this record."""

    actor: Any  # adapter, or all parameters
    value_weight: jax.Array  # [D] float32
    value_bias: jax.Array  # scalar float32


def with_critic(actor: Any, width: int) -> ActorCritic:
    """The actor beside a head [D] that predicts 0 everywhere: the first advantages are the rewards themselves."""
    return ActorCritic(actor, jnp.zeros(width, jnp.float32), jnp.zeros((), jnp.float32))


def actor_of(trainable: Any) -> Any:
    """What writes: the adapter or parameters, with or without a critic beside them."""
    return trainable.actor if isinstance(trainable, ActorCritic) else trainable


def predict(critic: ActorCritic, hidden: jax.Array) -> jax.Array:
    """Values [..., T] of hidden states [..., T, D]. The head's loss does not change what it reads."""
    hidden = jax.lax.stop_gradient(hidden).astype(jnp.float32)
    return hidden @ critic.value_weight + critic.value_bias


def gae(
    rewards: jax.Array, values: jax.Array, mask: jax.Array, *, discount: float, decay: float
) -> tuple[jax.Array, jax.Array]:
    """Generalised advantage estimates and returns, both [B, T], of rewards [B] that come with the last token.

    delta_t = r_t + discount * V_{t+1} - V_t;  A_t = delta_t + discount * decay * A_{t+1};  the return is A_t + V_t.
    After the last token there is nothing: V = 0. Both results are constants, and 0 where the mask is.
    Schulman et al. 2016, https://arxiv.org/abs/1506.02438.
    """
    values = jax.lax.stop_gradient(values) * mask
    following = jnp.pad(mask[:, 1:], [(0, 0), (0, 1)])
    last = mask * (1.0 - following)
    deltas = (last * rewards[:, None] + discount * _next(values) - values) * mask

    def back(later: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, continues = at
        now = delta + discount * decay * continues * later
        return now, now

    nothing = jnp.zeros_like(rewards, deltas.dtype)
    _, advantages = jax.lax.scan(back, nothing, (deltas.T, following.T), reverse=True)
    return advantages.T, advantages.T + values


def clipped_value_loss(values: jax.Array, old_values: jax.Array, returns: jax.Array, *, clip: float) -> jax.Array:
    """max((V - R)^2, (V_clipped - R)^2) / 2, where V_clipped is within `clip` of the old value. [B, T]

    The larger of both: values that have moved by more than `clip` towards the returns have no gradient.
    Engstrom et al. 2020, section 3, https://arxiv.org/abs/2005.12729.
    """
    clipped = old_values + jnp.clip(values - old_values, -clip, clip)
    return 0.5 * jnp.maximum(jnp.square(values - returns), jnp.square(clipped - returns))


def _next(x: jax.Array) -> jax.Array:
    return jnp.pad(x[:, 1:], [(0, 0), (0, 1)])
