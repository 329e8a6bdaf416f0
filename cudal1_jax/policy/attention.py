"""Causal grouped-query attention, on keys and values laid out [B, K, S, d].

S lies next to d because decode attention is three to four times faster that way on a CPU than with [B, S, K, d].
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from cudal1_jax.policy import blockwise
from cudal1_jax.policy.blockwise import Partial, Visible

TILE = 512  # queries of all rows of a prompt at a time over its prefix: scores stay in the cache
BLOCK = 256  # queries per block; keys after a block are never multiplied, which halves the work of long sequences


class KeyValues(NamedTuple):
    """Keys and values of one layer [B, K, S, d], or of all layers [L, B, K, S, d]; see `latent` for what it caches."""

    k: jax.Array
    v: jax.Array


class Prefix(NamedTuple):
    """Keys and values of one layer for N prompts [N, K, P, d], each shared by B / N consecutive rows."""

    keys: KeyValues
    lengths: jax.Array  # [N], valid positions of each prompt


def causal(q: jax.Array, own: KeyValues, segment_ids: jax.Array | None, prefix: Prefix | None) -> jax.Array:
    """Each position attends to itself, to earlier ones of its segment, and to all of its prompt's prefix.

    q [B, T, H, d], own [B, K, T, d], segment_ids [B, T] (a segment is consecutive) -> [B, T, H, size of a value].
    The prefix is never copied to the rows: rows of a prompt become further queries of one product.
    """
    B, T, H, d = q.shape
    K = own.k.shape[1]
    grouped = (q * d**-0.5).reshape(B, T, K, H // K, d).swapaxes(1, 2).reshape(B, K, -1, d)  # [B, K, M = T R, d]
    visible = _causal_visible(B, T, H // K, segment_ids)
    part = _attend_own(grouped, own, visible, H // K)
    mixed = part.out if prefix is None else blockwise.merge(part, _attend_prefix(grouped, prefix))
    return mixed.reshape(B, K, T, H // K, -1).swapaxes(1, 2).reshape(B, T, H, -1)


def _causal_visible(B: int, T: int, R: int, segment_ids: jax.Array | None) -> Visible:
    """Keys that query (t, r) sees: from the beginning of its segment to t. [B, T R]"""
    last = jnp.broadcast_to(jnp.arange(T, dtype=jnp.int32)[None], (B, T))
    first = jnp.zeros_like(last)
    if segment_ids is not None:
        begins = jnp.pad(segment_ids[:, 1:] != segment_ids[:, :-1], [(0, 0), (1, 0)])
        first = jax.lax.cummax(jnp.where(begins, last, 0), axis=1)
    return Visible(jnp.repeat(first, R, axis=1), jnp.repeat(last, R, axis=1))


def _attend_own(q: jax.Array, own: KeyValues, visible: Visible, R: int) -> Partial:
    """Block by block over the queries: keys after a block are never multiplied."""
    parts = []
    for start in range(0, q.shape[2], BLOCK * R):
        rows = slice(start, start + BLOCK * R)
        keys = slice(0, rows.stop // R)
        seen = Visible(visible.first[:, rows], visible.last[:, rows])
        parts.append(blockwise.attend(q[:, :, rows], own.k[:, :, keys], own.v[:, :, keys], seen, BLOCK * R))
    return Partial(*(jnp.concatenate(field, axis=2) for field in zip(*parts, strict=True)))


def _attend_prefix(q: jax.Array, prefix: Prefix) -> Partial:
    """q [B, K, M, d] over keys [N, K, P, d]: the B / N rows of a prompt become one."""
    B, K, M, d = q.shape
    N = prefix.lengths.shape[0]
    together = q.reshape(N, B // N, K, M, d).swapaxes(1, 2).reshape(N, K, -1, d)
    last = jnp.broadcast_to(prefix.lengths[:, None].astype(jnp.int32) - 1, (N, together.shape[2]))
    part = blockwise.attend(together, *prefix.keys, Visible(jnp.zeros_like(last), last), TILE)
    out, log_normaliser = (x.reshape(N, K, B // N, M, -1).swapaxes(1, 2) for x in part)
    return Partial(out.reshape(B, K, M, -1), log_normaliser.reshape(B, K, M))
