"""Functions that move elements without changing them, in JAX, with PyTorch's names and arguments."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from evaluator.nn.lengths import pad_widths


def reshape(x: jax.Array, shape: Sequence[int]) -> jax.Array:
    return jnp.reshape(x, tuple(shape))


def flatten(x: jax.Array, start_dim: int = 0, end_dim: int = -1) -> jax.Array:
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])


def transpose(x: jax.Array, dim0: int, dim1: int) -> jax.Array:
    return jnp.swapaxes(x, dim0, dim1)


def permute(x: jax.Array, dims: Sequence[int]) -> jax.Array:
    return jnp.transpose(x, tuple(dims))


def unsqueeze(x: jax.Array, dim: int) -> jax.Array:
    return jnp.expand_dims(x, dim)


def squeeze(x: jax.Array, dim: int | None = None) -> jax.Array:
    """Without its dimensions of length 1, or without `dim` if that has length 1."""
    if dim is not None and x.shape[dim] != 1:
        return x
    return jnp.squeeze(x, dim)


def expand(x: jax.Array, size: Sequence[int]) -> jax.Array:
    """Repeated along dimensions of length 1 to `size`, where -1 keeps a length."""
    lengths = (1,) * (len(size) - x.ndim) + tuple(x.shape)
    return jnp.broadcast_to(x, tuple(old if new == -1 else new for old, new in zip(lengths, size, strict=True)))


def cat(tensors: Sequence[jax.Array], dim: int = 0) -> jax.Array:
    return jnp.concatenate(tuple(tensors), axis=dim)


def stack(tensors: Sequence[jax.Array], dim: int = 0) -> jax.Array:
    return jnp.stack(tuple(tensors), axis=dim)


def chunk(x: jax.Array, chunks: int, dim: int = 0) -> tuple[jax.Array, ...]:
    """At most `chunks` parts of ceil(length / chunks) elements, the last one perhaps shorter."""
    length = x.shape[dim]
    step = -(-length // chunks)
    return tuple(jnp.split(x, list(range(step, length, step)), axis=dim))


def narrow(x: jax.Array, dim: int, start: int, length: int) -> jax.Array:
    return jax.lax.slice_in_dim(x, start, start + length, axis=dim)


def select(x: jax.Array, dim: int, index: int) -> jax.Array:
    return jnp.take(x, index, axis=dim)


def flip(x: jax.Array, dims: int | Sequence[int]) -> jax.Array:
    return jnp.flip(x, dims if isinstance(dims, int) else tuple(dims))


def roll(x: jax.Array, shifts: int | tuple[int, ...], dims: int | tuple[int, ...]) -> jax.Array:
    return jnp.roll(x, shifts, dims)


def diag(x: jax.Array) -> jax.Array:
    return jnp.diag(x)


def tril(x: jax.Array, diagonal: int = 0) -> jax.Array:
    return jnp.tril(x, diagonal)


def triu(x: jax.Array, diagonal: int = 0) -> jax.Array:
    return jnp.triu(x, diagonal)


def masked_fill(x: jax.Array, mask: jax.Array, value: float) -> jax.Array:
    return jnp.where(mask, value, x)


def zeros_like(x: jax.Array) -> jax.Array:
    return jnp.zeros_like(x)


def ones_like(x: jax.Array) -> jax.Array:
    return jnp.ones_like(x)


def pad(x: jax.Array, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> jax.Array:
    """`pad` has the elements added before and after the last dimension, then those of the one before it, and so on."""
    if mode != "constant":
        raise ValueError(f'pad: mode is {mode!r}; only "constant" is there')
    return jnp.pad(x, pad_widths(pad, x.ndim), constant_values=value)


def unfold(x: jax.Array, dim: int, size: int, step: int) -> jax.Array:
    """Windows of `size` elements along `dim`, `step` apart, each as a new last dimension (`torch.Tensor.unfold`)."""
    windows = range(0, x.shape[dim] - size + 1, step)
    places = np.asarray(windows)[:, None] + np.arange(size)
    axis = dim % x.ndim
    return jnp.moveaxis(jnp.take(x, places, axis=axis), axis + 1, -1)
