"""Decoding one token per row, laid out for speed: G rows continue one prompt, whose keys and values exist once.

Activations are [D, B] and weights [out, in], because a CPU's matrix product `w @ x` with few columns runs 1.5 to 2
times as fast as `x @ w` with few rows. For the same reason a prompt's values are kept [d, P]. Own keys are read in
blocks, as many as are in use, so that one compiled program serves every length at the cost of the length reached. All
rows write the same slot, whenever they began: slots are a ring that follows the steps, and a row sees those since it
began.
Layers are not scanned: a scan copies each layer's weights and cache before it uses them, a fifth of a step's time.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from cudal1_jax.policy import attention
from cudal1_jax.policy.attention import KeyValues
from cudal1_jax.policy.blockwise import MASKED
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import LAYER_PARAMETERS, Params, unembedding

CACHE_BLOCK = 64  # slots read at a time; a layer's block of 8 rows (0.8 MB) stays in the second-level cache


class Weights(NamedTuple):
    """Parameters as `step` takes them: [out, in], q, k and v in one matrix, gate and up in one, a record per layer."""

    embed: jax.Array  # [V, D]
    unembed: jax.Array  # [V, D], the same array where embeddings are tied
    final_norm: jax.Array  # [D]
    layers: tuple[Params, ...]  # L of attn_norm, qkv, o, mlp_norm, gate_up, down


class Prompts(NamedTuple):
    """N prefilled prompts."""

    keys: tuple[jax.Array, ...]  # L of [N, K, P, d]
    values: tuple[jax.Array, ...]  # L of [N, K, d, P]
    lengths: jax.Array  # [N], tokens in use of each prompt


class Rows(NamedTuple):
    """Which prompt each row continues, and since when."""

    prompt: jax.Array  # [B]
    place: jax.Array  # [B], its place in `members` of that prompt
    members: jax.Array  # [N, C], the rows of each prompt; short lists are filled up with any row
    begin: jax.Array  # [B], step at which the row's first own token came; of a row that has ended, the present step


Cache = tuple[KeyValues, ...]  # L of [B, K, S, d]: what each row has generated, step t in slot t modulo S


class _Softmax(NamedTuple):
    """A softmax-weighted sum in progress: what is needed to add further keys."""

    top: jax.Array  # [B, K, R, 1], largest score so far
    total: jax.Array  # [B, K, R, 1], sum of exp(score - top)
    mixed: jax.Array  # [B, K, R, d], sum of exp(score - top) * value


def prepare(config: DecoderConfig, params: Params) -> Weights:
    """The parameters in the layout of `step`; a copy of all but the embedding table."""
    stacked = {name: params[name] for name in LAYER_PARAMETERS}
    layers = tuple(_prepare_layer(stacked, layer) for layer in range(config.layers))
    return Weights(params["embed"], unembedding(config, params), params["final_norm"], layers)


@jax.jit
def _prepare_layer(stacked: Params, layer: int) -> Params:
    """One program for all layers: the layer's number is an argument of it."""
    w = {name: x[layer] for name, x in stacked.items()}
    return {
        "attn_norm": w["attn_norm"],
        "qkv": jnp.concatenate([w["q"].T, w["k"].T, w["v"].T]),
        "o": w["o"].T,
        "mlp_norm": w["mlp_norm"],
        "gate_up": jnp.concatenate([w["gate"].T, w["up"].T]),
        "down": w["down"].T,
    }


def prompts(prefilled: KeyValues, lengths: jax.Array) -> Prompts:
    """Prompts from what `decoder.prefill` gave, [L, N, K, P, d]."""
    return Prompts(tuple(prefilled.k), tuple(prefilled.v.swapaxes(3, 4)), lengths)


def empty_cache(config: DecoderConfig, rows: int, tokens: int, dtype: jnp.dtype) -> Cache:
    """Zeros, with room for `tokens` own tokens of each row, rounded up to whole blocks."""
    size = -(-tokens // CACHE_BLOCK) * CACHE_BLOCK
    shape = (rows, config.key_heads, size, config.head_size)
    return tuple(KeyValues(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)) for _ in range(config.layers))


def together(prompts: int, rows: int) -> Rows:
    """Rows that all begin at step 0; row b continues prompt b // (rows / prompts)."""
    members = jnp.arange(rows).reshape(prompts, -1)
    group = members.shape[1]
    return Rows(jnp.arange(rows) // group, jnp.arange(rows) % group, members, jnp.zeros(rows, jnp.int32))


def step(
    config: DecoderConfig,
    weights: Weights,
    shared: Prompts,
    cache: Cache,
    tokens: jax.Array,
    number: jax.Array,
    rows: Rows | None = None,
) -> tuple[jax.Array, Cache]:
    """Hidden states [D, B] after the tokens [B] of step `number`, and the cache with that step's slot filled.

    `rows` defaults to `together`. A row is the same, bit by bit, whenever it begins, if at a multiple of CACHE_BLOCK.
    """
    if rows is None:
        rows = together(shared.lengths.shape[0], tokens.shape[0])
    positions = shared.lengths[rows.prompt] + number - rows.begin
    rotation = attention.rotation(positions[:, None], config.head_size, config.rope_theta)  # [B, 1, d / 2]
    x = weights.embed[tokens].T
    written = []
    for w, keys, values, own in zip(weights.layers, shared.keys, shared.values, cache, strict=True):
        q, new = _project(config, w, x, rotation)
        slot = number % own.k.shape[2]
        own = jax.tree.map(lambda c, n, slot=slot: jax.lax.dynamic_update_slice(c, n, (0, 0, slot, 0)), own, new)
        attended = _own(_prompt(q, keys, values, shared.lengths, rows), q, own, number, rows.begin)
        x = x + w["o"] @ (attended.mixed / attended.total).astype(x.dtype).reshape(x.shape[1], -1).T
        gate, up = jnp.split(w["gate_up"] @ _norm(x, w["mlp_norm"], config.norm_epsilon), 2)
        x = x + w["down"] @ (jax.nn.silu(gate) * up)
        written.append(own)
    return _norm(x, weights.final_norm, config.norm_epsilon), tuple(written)


def logits(weights: Weights, hidden: jax.Array) -> jax.Array:
    """Next-token logits [B, V] in float32 of hidden states [D, B]."""
    columns = jnp.matmul(weights.unembed, hidden, preferred_element_type=jnp.float32)
    # without the barrier XLA folds the transpose into the product, whose swapped form its CPU backend lacks in bfloat16
    return jax.lax.optimization_barrier(columns).T


def _project(
    config: DecoderConfig, w: Params, x: jax.Array, rotation: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, KeyValues]:
    """Scaled queries [B, K, R, d] and the new keys and values [B, K, 1, d] of activations [D, B]."""
    qkv = w["qkv"] @ _norm(x, w["attn_norm"], config.norm_epsilon)
    heads = qkv.reshape(-1, config.head_size, x.shape[1]).transpose(2, 0, 1)[:, None]  # [B, 1, H + 2 K, d]
    q, k, v = jnp.split(heads, [config.heads, config.heads + config.key_heads], axis=2)
    q, k = attention.rotate(q, *rotation), attention.rotate(k, *rotation)
    q = (q * config.head_size**-0.5).reshape(-1, config.key_heads, config.group, config.head_size)
    return q, KeyValues(k.swapaxes(1, 2), v.swapaxes(1, 2))


def _prompt(q: jax.Array, keys: jax.Array, values: jax.Array, lengths: jax.Array, rows: Rows) -> _Softmax:
    """Queries [B, K, R, d] against the prompts' keys [N, K, P, d] and values [N, K, d, P]."""
    _, K, R, d = q.shape
    N, C = rows.members.shape
    P = keys.shape[2]
    members = q[rows.members].transpose(0, 2, 4, 1, 3).reshape(N, K, d, -1)  # [N, K, d, C R]
    scores = jnp.matmul(keys, members, preferred_element_type=jnp.float32)  # [N, K, P, C R]
    valid = jnp.arange(P)[None, None, :, None] < lengths[:, None, None, None]
    scores = jnp.where(jnp.broadcast_to(valid, scores.shape), scores, MASKED)
    top = jnp.max(scores, axis=2, keepdims=True)
    weights = jnp.exp(scores - top)
    mixed = jnp.matmul(values, weights.astype(values.dtype), preferred_element_type=jnp.float32)  # [N, K, d, C R]

    def per_row(x: jax.Array) -> jax.Array:
        return x.reshape(N, K, -1, C, R).transpose(0, 3, 1, 4, 2)[rows.prompt, rows.place]  # [B, K, R, ...]

    return _Softmax(per_row(top), per_row(jnp.sum(weights, axis=2, keepdims=True)), per_row(mixed))


def _own(so_far: _Softmax, q: jax.Array, own: KeyValues, number: jax.Array, begin: jax.Array) -> _Softmax:
    """Adds each row's own keys of the steps `begin` [B] to `number`, block by block; earlier blocks change nothing."""
    B, K, S, d = own.k.shape

    def block(index: jax.Array, so_far: _Softmax) -> _Softmax:
        start = index * CACHE_BLOCK % S
        k, v = (jax.lax.dynamic_slice(c, (0, 0, start, 0), (B, K, CACHE_BLOCK, d)) for c in own)
        scores = jnp.einsum("bkrd,bksd->bkrs", q, k, preferred_element_type=jnp.float32)
        steps = (index * CACHE_BLOCK + jnp.arange(CACHE_BLOCK))[None, :]
        visible = (steps >= begin[:, None]) & (steps <= number)
        scores = jnp.where(jnp.broadcast_to(visible[:, None, None, :], scores.shape), scores, MASKED)
        top = jnp.maximum(so_far.top, jnp.max(scores, axis=-1, keepdims=True))
        weights, shrink = jnp.exp(scores - top), jnp.exp(so_far.top - top)
        mixed = jnp.einsum("bkrs,bksd->bkrd", weights.astype(v.dtype), v, preferred_element_type=jnp.float32)
        total = so_far.total * shrink + jnp.sum(weights, axis=-1, keepdims=True)
        return _Softmax(top, total, so_far.mixed * shrink + mixed)

    return jax.lax.fori_loop(jnp.min(begin) // CACHE_BLOCK, number // CACHE_BLOCK + 1, block, so_far)


def _norm(x: jax.Array, weight: jax.Array, epsilon: float) -> jax.Array:
    """RMSNorm of the columns of x [D, B]."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=0, keepdims=True) + epsilon)
    return wide.astype(x.dtype) * jnp.broadcast_to(weight[:, None], x.shape)
