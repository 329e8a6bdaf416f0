"""Losses in JAX, with PyTorch's names, arguments and values."""

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy

from evaluator.nn.jax_nn.rows import log_softmax


def mse_loss(input: jax.Array, target: jax.Array, reduction: str = "mean") -> jax.Array:
    return _reduce((input - target) ** 2, reduction)


def l1_loss(input: jax.Array, target: jax.Array, reduction: str = "mean") -> jax.Array:
    return _reduce(jnp.abs(input - target), reduction)


def smooth_l1_loss(input: jax.Array, target: jax.Array, reduction: str = "mean", beta: float = 1.0) -> jax.Array:
    """Half the square over `beta` where the difference is below `beta`, the difference less beta / 2 above."""
    difference = jnp.abs(input - target)
    return _reduce(jnp.where(difference < beta, 0.5 * difference**2 / beta, difference - 0.5 * beta), reduction)


def huber_loss(input: jax.Array, target: jax.Array, reduction: str = "mean", delta: float = 1.0) -> jax.Array:
    """`delta` times the smooth L1 loss with beta = delta."""
    return delta * smooth_l1_loss(input, target, reduction, beta=delta)


def kl_div(input: jax.Array, target: jax.Array, reduction: str = "mean", log_target: bool = False) -> jax.Array:
    """target (log target - input), `input` being log-probabilities; "batchmean" divides the sum by the batch."""
    pointwise = jnp.exp(target) * (target - input) if log_target else xlogy(target, target) - target * input
    if reduction == "batchmean":
        return jnp.sum(pointwise) / input.shape[0]
    return _reduce(pointwise, reduction)


def cross_entropy(input: jax.Array, target: jax.Array, reduction: str = "mean") -> jax.Array:
    """Negative log-probability of class `target` [B] under logits `input` [B, C]."""
    logprobs = log_softmax(input, dim=1)
    return _reduce(-jnp.take_along_axis(logprobs, target[:, None], axis=1)[:, 0], reduction)


def cosine_similarity(x1: jax.Array, x2: jax.Array, dim: int = 1, eps: float = 1e-8) -> jax.Array:
    """x1 . x2 over the product of their lengths, each held at `eps` or above."""
    length1 = jnp.maximum(jnp.linalg.norm(x1, axis=dim), eps)
    length2 = jnp.maximum(jnp.linalg.norm(x2, axis=dim), eps)
    return jnp.sum(x1 * x2, axis=dim) / (length1 * length2)


def triplet_margin_loss(
    anchor: jax.Array, positive: jax.Array, negative: jax.Array, margin: float = 1.0, eps: float = 1e-6
) -> jax.Array:
    """Mean of max(|a - p| - |a - n| + margin, 0), distances over the last dimension of differences shifted by `eps`."""
    near = jnp.linalg.norm(anchor - positive + eps, axis=-1)
    far = jnp.linalg.norm(anchor - negative + eps, axis=-1)
    return jnp.mean(jnp.maximum(near - far + margin, 0))


def _reduce(pointwise: jax.Array, reduction: str) -> jax.Array:
    if reduction == "mean":
        return jnp.mean(pointwise)
    if reduction == "sum":
        return jnp.sum(pointwise)
    if reduction == "none":
        return pointwise
    raise ValueError(f'reduction is {reduction!r}; it must be "mean", "sum" or "none"')
