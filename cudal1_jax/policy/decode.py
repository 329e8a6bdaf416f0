"""Decoding one token per row, laid out for speed: G rows continue one prompt, whose keys and values exist once.

Activations are [D, B] and weights [out, in], because a CPU's matrix product `w @ x` with few columns runs 1.5 to 2
times as fast as `x @ w` with few rows. For the same reason a prompt's values are kept [d, P]. Own keys are read in
blocks, as many as are in use, so that one compiled program serves every length at the cost of the length reached.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from cudal1_jax.policy import attention
from cudal1_jax.policy.attention import KeyValues
from cudal1_jax.policy.blockwise import MASKED
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params

CACHE_BLOCK = 64  # slots read at a time; a layer's block of 8 rows (0.8 MB) stays in the second-level cache


class Prompts(NamedTuple):
    """N prefilled prompts."""

    keys: jax.Array  # [L, N, K, P, d]
    values: jax.Array  # [L, N, K, d, P]
    lengths: jax.Array  # [N], tokens in use of each prompt


class _Softmax(NamedTuple):
    """A softmax-weighted sum in progress: what is needed to add further keys."""

    top: jax.Array  # [B, K, R, 1], largest score so far
    total: jax.Array  # [B, K, R, 1], sum of exp(score - top)
    mixed: jax.Array  # [B, K, R, d], sum of exp(score - top) * value


def prepare(config: DecoderConfig, params: Params) -> Params:
    """Weights as `step` takes them: [L, out, in], q, k, v in one matrix, gate and up in one. A copy of all but the
    table."""

    def transposed(*names: str) -> jax.Array:
        return jnp.concatenate([params[name].swapaxes(1, 2) for name in names], axis=1)

    weights = {"qkv": transposed("q", "k", "v"), "gate_up": transposed("gate", "up")}
    weights |= {"o": transposed("o"), "down": transposed("down")}
    table = params["embed"] if config.tied_embeddings else params["unembed"]
    return (
        weights | {name: params[name] for name in ("attn_norm", "mlp_norm", "final_norm", "embed")} | {"unembed": table}
    )


def prompts(prefilled: KeyValues, lengths: jax.Array) -> Prompts:
    """Prompts from what `decoder.prefill` gave, [L, N, K, P, d]."""
    return Prompts(prefilled.k, prefilled.v.swapaxes(3, 4), lengths)


def empty_cache(config: DecoderConfig, rows: int, tokens: int, dtype: jnp.dtype) -> KeyValues:
    """Room for `tokens` own tokens of each row, rounded up to whole blocks: zeros [L, B, K, S, d]."""
    size = -(-tokens // CACHE_BLOCK) * CACHE_BLOCK
    shape = (config.layers, rows, config.key_heads, size, config.head_size)
    return KeyValues(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))


def step(
    config: DecoderConfig, weights: Params, shared: Prompts, cache: KeyValues, tokens: jax.Array, number: jax.Array
) -> tuple[jax.Array, KeyValues]:
    """Hidden states [D, B] after each row's own token `number`, tokens [B], and the cache with that slot filled.

    Row b continues prompt b // (B / N). All rows write the same slot, since all begin right after their prompt.
    """
    B = tokens.shape[0]
    positions = jnp.repeat(shared.lengths, B // shared.lengths.shape[0]) + number
    cos, sin = attention.rotation(positions, config.head_size, config.rope_theta)  # [B, d / 2]

    def layer(carry: tuple[jax.Array, KeyValues], xs: tuple) -> tuple[tuple[jax.Array, KeyValues], None]:
        x, cache = carry
        index, w, keys, values = xs
        qkv = w["qkv"] @ _norm(x, w["attn_norm"], config.norm_epsilon)
        heads = qkv.reshape(-1, config.head_size, B).transpose(2, 0, 1)[:, None]  # [B, 1, H + 2 K, d]
        q, k, v = jnp.split(heads, [config.heads, config.heads + config.key_heads], axis=2)
        q, k = attention.rotate(q, cos[:, None], sin[:, None]), attention.rotate(k, cos[:, None], sin[:, None])
        q = (q * config.head_size**-0.5).reshape(B, config.key_heads, config.group, config.head_size)
        own = KeyValues(k.swapaxes(1, 2), v.swapaxes(1, 2))
        cache = jax.tree.map(
            lambda c, new: jax.lax.dynamic_update_slice(c, new[None], (index, 0, 0, number, 0)), cache, own
        )
        so_far = _own(_prompt(q, keys, values, shared.lengths), q, cache, index, number)
        mixed = (so_far.mixed / so_far.total).astype(x.dtype).reshape(B, -1)
        x = x + w["o"] @ mixed.T
        gate, up = jnp.split(w["gate_up"] @ _norm(x, w["mlp_norm"], config.norm_epsilon), 2)
        return (x + w["down"] @ (jax.nn.silu(gate) * up), cache), None

    stacked = {name: weights[name] for name in ("attn_norm", "qkv", "o", "mlp_norm", "gate_up", "down")}
    xs = (jnp.arange(config.layers), stacked, shared.keys, shared.values)
    (x, cache), _ = jax.lax.scan(layer, (weights["embed"][tokens].T, cache), xs)
    return _norm(x, weights["final_norm"], config.norm_epsilon), cache


def logits(weights: Params, hidden: jax.Array) -> jax.Array:
    """Next-token logits [B, V] in float32 of hidden states [D, B]."""
    columns = jnp.matmul(weights["unembed"], hidden, preferred_element_type=jnp.float32)
    # without the barrier XLA folds the transpose into the product, whose swapped form its CPU backend lacks in bfloat16
    return jax.lax.optimization_barrier(columns).T


def _prompt(q: jax.Array, keys: jax.Array, values: jax.Array, lengths: jax.Array) -> _Softmax:
    """Queries [B, K, R, d] against the prompts' keys [N, K, P, d] and values [N, K, d, P]."""
    B, K, R, d = q.shape
    N, _, P, _ = keys.shape
    together = q.reshape(N, B // N, K, R, d).transpose(0, 2, 4, 1, 3).reshape(N, K, d, -1)  # [N, K, d, G R]
    scores = jnp.matmul(keys, together, preferred_element_type=jnp.float32)  # [N, K, P, G R]
    valid = jnp.arange(P)[None, None, :, None] < lengths[:, None, None, None]
    scores = jnp.where(jnp.broadcast_to(valid, scores.shape), scores, MASKED)
    top = jnp.max(scores, axis=2, keepdims=True)
    weights = jnp.exp(scores - top)
    mixed = jnp.matmul(values, weights.astype(values.dtype), preferred_element_type=jnp.float32)  # [N, K, d, G R]

    def per_row(x: jax.Array) -> jax.Array:
        return x.reshape(N, K, -1, B // N, R).transpose(0, 3, 1, 4, 2).reshape(B, K, R, -1)

    return _Softmax(per_row(top), per_row(jnp.sum(weights, axis=2, keepdims=True)), per_row(mixed))


def _own(so_far: _Softmax, q: jax.Array, cache: KeyValues, layer: jax.Array, number: jax.Array) -> _Softmax:
    """Adds each row's own keys up to slot `number`, block by block."""
    _, B, K, _, d = cache.k.shape

    def block(index: jax.Array, so_far: _Softmax) -> _Softmax:
        start = index * CACHE_BLOCK
        k, v = (jax.lax.dynamic_slice(c, (layer, 0, 0, start, 0), (1, B, K, CACHE_BLOCK, d))[0] for c in cache)
        scores = jnp.einsum("bkrd,bksd->bkrs", q, k, preferred_element_type=jnp.float32)
        visible = (start + jnp.arange(CACHE_BLOCK) <= number)[None, None, None, :]
        scores = jnp.where(jnp.broadcast_to(visible, scores.shape), scores, MASKED)
        top = jnp.maximum(so_far.top, jnp.max(scores, axis=-1, keepdims=True))
        weights, shrink = jnp.exp(scores - top), jnp.exp(so_far.top - top)
        mixed = jnp.einsum("bkrs,bksd->bkrd", weights.astype(v.dtype), v, preferred_element_type=jnp.float32)
        total = so_far.total * shrink + jnp.sum(weights, axis=-1, keepdims=True)
        return _Softmax(top, total, so_far.mixed * shrink + mixed)

    return jax.lax.fori_loop(0, number // CACHE_BLOCK + 1, block, so_far)


def _norm(x: jax.Array, weight: jax.Array, epsilon: float) -> jax.Array:
    """RMSNorm of the columns of x [D, B]."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=0, keepdims=True) + epsilon)
    return wide.astype(x.dtype) * jnp.broadcast_to(weight[:, None], x.shape)
