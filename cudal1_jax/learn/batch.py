"""Batches of the learner as named records of arrays, and the padding that makes them from lists of token ids."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from cudal1_jax.learn import step


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
    mask: jax.Array  # [B, T] float32, 1 on a completion's tokens, which come first in its row
    advantages: jax.Array  # [B] float32; for PPO the rewards, from which it makes advantages of tokens
    sampler_logprobs: jax.Array  # [B, T] float32, as the sampler saw them, at the run's temperature
    reference_logprobs: jax.Array  # [B, T] float32, of the policy the stage began with; NaN: that is the present one
    old_logprobs: jax.Array | None = None  # [B, T] float32, before the first update on these rows; None: present ones
    old_values: jax.Array | None = None  # [B, T] float32, of the critic then, likewise
    row_tokens: int | None = dataclasses.field(default=None, metadata={"static": True})  # C of `completion_scores`


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
    """Completions padded likewise; reference log-probs are NaN until `dataclasses.replace` puts them in.

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
        reference_logprobs=jnp.full(tokens.shape, jnp.nan, jnp.float32),
    )


def split(
    prompts: Prompts, completions: Completions, *, slices: int, micro_batches: int, bucket: int
) -> tuple[Prompts, Completions]:
    """`step.split` into micro-batches of about the same number of tokens; packed rows are multiples of `bucket`.

    The completions of a prompt change their order for it. ValueError where the numbers do not divide.
    """
    N = len(prompts.lengths)
    lengths = np.asarray(completions.mask).sum(axis=1).astype(int)
    if len(lengths) % (N * micro_batches):
        return step.split(prompts, completions, slices=slices, micro_batches=micro_batches)  # says what does not divide
    groups = lengths.reshape(N, -1)
    order = np.stack([_balanced(group, micro_batches) for group in groups])
    packed = np.take_along_axis(groups, order, axis=1).reshape(N, micro_batches, -1).sum(axis=2)
    flat = (order + groups.shape[1] * np.arange(N)[:, None]).reshape(-1)
    rows = jax.tree.map(lambda x: np.asarray(x)[flat], completions)
    rows = dataclasses.replace(rows, row_tokens=max(1, -(-int(packed.max()) // bucket)) * bucket)
    return step.split(prompts, rows, slices=slices, micro_batches=micro_batches)


def _balanced(lengths: np.ndarray, parts: int) -> np.ndarray:
    """An order of the rows in which `parts` consecutive runs of one size have sums that are close: long with short."""
    ranks = np.arange(len(lengths)).reshape(-1, parts)
    ranks[1::2] = ranks[1::2, ::-1]
    return np.argsort(-lengths, kind="stable")[ranks.T.reshape(-1)]


def _padded(rows: Sequence[Sequence[float]], dtype: type, bucket: int) -> np.ndarray:
    if not rows:
        raise ValueError("a batch needs at least one row")
    longest = max([1, *map(len, rows)])
    result: np.ndarray = np.zeros((len(rows), -(-longest // bucket) * bucket), dtype)
    for number, row in enumerate(rows):
        result[number, : len(row)] = row
    return result
