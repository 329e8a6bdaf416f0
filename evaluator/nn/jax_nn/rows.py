"""Row-wise functions in JAX (softmax, norms), with PyTorch's names, arguments and values."""

import jax
import jax.numpy as jnp


def softmax(x: jax.Array, dim: int) -> jax.Array:
    return jax.nn.softmax(x, axis=dim)


def log_softmax(x: jax.Array, dim: int) -> jax.Array:
    return jax.nn.log_softmax(x, axis=dim)


def normalize(x: jax.Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> jax.Array:
    """x over its p-norm along `dim`, the norm held at `eps` or above."""
    length = jnp.linalg.norm(x, ord=p, axis=dim, keepdims=True)
    return x / jnp.maximum(length, eps)


def layer_norm(
    x: jax.Array,
    normalized_shape: tuple[int, ...],
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    eps: float = 1e-5,
) -> jax.Array:
    """Zero mean and unit (biased) variance over the trailing `normalized_shape`, then weight and bias."""
    return _affine(_standardise(x, _trailing(x, normalized_shape), eps), weight, bias)


def rms_norm(
    x: jax.Array, normalized_shape: tuple[int, ...], weight: jax.Array | None = None, eps: float | None = None
) -> jax.Array:
    """x over the root of its mean square over `normalized_shape`; `eps` defaults to the dtype's epsilon."""
    epsilon = float(jnp.finfo(x.dtype).eps) if eps is None else eps
    mean_square = jnp.mean(x * x, axis=_trailing(x, normalized_shape), keepdims=True)
    return _affine(x * jax.lax.rsqrt(mean_square + epsilon), weight, None)


def group_norm(
    x: jax.Array,
    num_groups: int,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    eps: float = 1e-5,
) -> jax.Array:
    """Standardised over each of `num_groups` groups of channels (dimension 1) and what follows; affine per channel."""
    batch, channels = x.shape[:2]
    if channels % num_groups:
        raise ValueError(f"group_norm: {channels} channels cannot be split into {num_groups} groups")
    groups = x.reshape(batch, num_groups, -1)
    return _affine(_standardise(groups, (2,), eps).reshape(x.shape), _per_channel(x, weight), _per_channel(x, bias))


def instance_norm(
    x: jax.Array, weight: jax.Array | None = None, bias: jax.Array | None = None, eps: float = 1e-5
) -> jax.Array:
    """Standardised over the dimensions after the channel, by the instance's own statistics."""
    standard = _standardise(x, tuple(range(2, x.ndim)), eps)
    return _affine(standard, _per_channel(x, weight), _per_channel(x, bias))


def batch_norm(
    x: jax.Array, weight: jax.Array | None = None, bias: jax.Array | None = None, eps: float = 1e-5
) -> jax.Array:
    """Standardised per channel by the batch's own statistics: training mode, which the benchmark never leaves."""
    standard = _standardise(x, (0, *range(2, x.ndim)), eps)
    return _affine(standard, _per_channel(x, weight), _per_channel(x, bias))


def _trailing(x: jax.Array, normalized_shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    if tuple(x.shape[axis] for axis in axes if axis >= 0) != tuple(normalized_shape):
        raise ValueError(f"normalized_shape {tuple(normalized_shape)} is not the end of the input's shape {x.shape}")
    return axes


def _standardise(x: jax.Array, axes: tuple[int, ...], eps: float) -> jax.Array:
    centred = x - jnp.mean(x, axis=axes, keepdims=True)
    variance = jnp.mean(centred * centred, axis=axes, keepdims=True)
    return centred * jax.lax.rsqrt(variance + eps)


def _affine(x: jax.Array, weight: jax.Array | None, bias: jax.Array | None) -> jax.Array:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _per_channel(x: jax.Array, values: jax.Array | None) -> jax.Array | None:
    return None if values is None else values.reshape(1, -1, *(1,) * (x.ndim - 2))
