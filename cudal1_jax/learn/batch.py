"""Batches of the learner as named records of arrays, and the padding that makes them from lists of token ids."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prompts:
    """N prompts, each shared by G completions."""

    tokens: jax.Array  # [N, P] int32, padded on the right with 0; what the padding holds never matters
    lengths: jax.Array  # [N] int32, at least 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Completions:
    """B = N * G completions in prompt order."""

    tokens: jax.Array  # [B, T] int32, the end-of-turn token included where one was sampled
    mask: jax.Array  # [B, T] float32, 1 on tokens the policy chose
    advantages: jax.Array  # [B] float32
    sampler_logprobs: jax.Array  # [B, T] float32, as the sampler saw them, at the run's temperature
    reference_logprobs: jax.Array  # [B, T] float32, of the policy the stage began with


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PackedRows:
    """Rows of several examples each; `targets` are the tokens one position later."""

    tokens: jax.Array  # [R, T] int32
    targets: jax.Array  # [R, T] int32
    mask: jax.Array  # [R, T] float32, 1 where the target counts in the loss
    positions: jax.Array  # [R, T] int32, from 0 in each segment
    segment_ids: jax.Array  # [R, T] int32, from 1; 0 is padding


def prompts(ids: Sequence[Sequence[int]], *, bucket: int) -> Prompts:
    """Prompts padded to the longest, rounded up to a multiple of `bucket` tokens so that few shapes are compiled."""
    return Prompts(jnp.asarray(_padded(ids, np.int32, bucket)), jnp.array([len(row) for row in ids], jnp.int32))


def completions(
    ids: Sequence[Sequence[int]],
    *,
    advantages: Sequence[float],
    sampler_logprobs: Sequence[Sequence[float]],
    bucket: int,
) -> Completions:
    """Completions padded likewise; reference log-probs are zeros until `dataclasses.replace` puts them in.

    ValueError where the lists do not belong together. An empty completion is allowed: it has no token in the loss.
    """
    lengths = [len(row) for row in ids]
    if len(advantages) != len(ids) or [len(row) for row in sampler_logprobs] != lengths:
        raise ValueError(
            f"each of {len(ids)} completions needs an advantage and a log-prob per token: saw {len(advantages)} "
            f"advantages, log-prob lengths {[len(row) for row in sampler_logprobs]} for token lengths {lengths}"
        )
    tokens = _padded(ids, np.int32, bucket)
    mask = (np.arange(tokens.shape[1])[None] < np.array(lengths)[:, None]).astype(np.float32)
    return Completions(
        tokens=jnp.asarray(tokens),
        mask=jnp.asarray(mask),
        advantages=jnp.asarray(advantages, jnp.float32),
        sampler_logprobs=jnp.asarray(_padded(sampler_logprobs, np.float32, bucket)),
        reference_logprobs=jnp.zeros(tokens.shape, jnp.float32),
    )


def _padded(rows: Sequence[Sequence[float]], dtype: type, bucket: int) -> np.ndarray:
    if not rows:
        raise ValueError("a batch needs at least one row")
    longest = max([1, *map(len, rows)])
    result: np.ndarray = np.zeros((len(rows), -(-longest // bucket) * bucket), dtype)
    for number, row in enumerate(rows):
        result[number, : len(row)] = row
    return result
