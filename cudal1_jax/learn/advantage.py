"""Advantages of a group of samples: how much better each did than the others of its own prompt.

Shapes: rewards and advantages [N, G], N prompts and G samples per prompt, float32.
"""

import jax
import jax.numpy as jnp


def group_normalised(rewards: jax.Array, *, epsilon: float = 1e-6) -> jax.Array:
    """Z-scores within each prompt's group, as in GRPO: (r - mean) / (std + epsilon), [N, G].

    The standard deviation divides by G. A group of equal rewards has advantage zero throughout, so it says nothing.
    Shao et al. 2024, https://arxiv.org/abs/2402.03300, section 4.1.
    """
    centred = group_centred(rewards)
    return centred / (jnp.std(_grouped(rewards), axis=1, keepdims=True) + epsilon)


def group_centred(rewards: jax.Array) -> jax.Array:
    """Rewards less their group's mean, [N, G]: Dr.GRPO, which leaves out the standard deviation.

    Without the division, groups whose rewards barely differ are not blown up to the weight of the others.
    Liu et al. 2025, https://arxiv.org/abs/2503.20783.
    """
    rewards = _grouped(rewards)
    return rewards - jnp.mean(rewards, axis=1, keepdims=True)


def leave_one_out(rewards: jax.Array) -> jax.Array:
    """Reward less the mean of the *other* samples of the group, [N, G] (RLOO): an unbiased baseline.

    It equals G / (G - 1) times `group_centred`. Raises ValueError for G = 1, where there is no other sample.
    Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740.
    """
    group = _grouped(rewards).shape[1]
    if group < 2:
        raise ValueError("leave_one_out compares a sample with the others of its group: it needs at least 2, saw 1")
    return group_centred(rewards) * (group / (group - 1))


def _grouped(rewards: jax.Array) -> jax.Array:
    rewards = jnp.asarray(rewards, jnp.float32)
    if rewards.ndim != 2 or rewards.shape[1] == 0:
        raise ValueError(f"rewards must be [prompts, samples] with at least one sample, saw shape {rewards.shape}")
    return rewards
