"""Decoding one token per row, laid out for speed: G rows continue one prompt, whose keys and values exist once.

Activations are [D, B] and weights [out, in], because a CPU's matrix product `w @ x` with few columns runs 1.5 to 2
times as fast as `x @ w` with few rows. For the same reason a prompt's values are kept [d, P]. Own keys are read in
blocks, as many as are in use, so that one compiled program serves every length at the cost of the length reached. All
rows write the same slot, whenever they began: slots are a ring that follows the steps, and a row sees those since it
began.
Layers are not scanned: a scan copies each layer's weights and cache before it uses them, a fifth of a step's time.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cudal1_jax.policy import experts, latent, parameters, rope
from cudal1_jax.policy.attention import KeyValues
from cudal1_jax.policy.blockwise import MASKED
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.norm import rms_norm
from cudal1_jax.policy.parameters import Params, unembedding

CACHE_BLOCK = 64  # slots read at a time; a layer's block of 8 rows (0.8 MB) stays in the second-level cache


class Weights(NamedTuple):
    """Parameters as `step` takes them: [out, in], q, k and v in one matrix, gate and up in one, a record per layer."""

    embed: jax.Array  # [V, D]
    unembed: jax.Array  # [V, D], the same array where embeddings are tied
    final_norm: jax.Array  # [D]
    layers: tuple[Params, ...]  # L of `_prepare_layer`


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
    layers = []
    for stack in parameters.stacks(config):
        stacked = parameters.of_stack(stack, params)
        layers += [_prepare_layer(config, stacked, row) for row in range(stack.last - stack.first)]
    return Weights(params["embed"], unembedding(config, params), params["final_norm"], tuple(layers))


@functools.partial(jax.jit, static_argnums=0)
def _prepare_layer(config: DecoderConfig, stacked: Params, row: int) -> Params:
    """One program for all layers of a stack: the layer's number is an argument of it."""
    w = {name: x[row] for name, x in stacked.items()}
    prepared = {name: x for name, x in w.items() if x.ndim == 1 and not name.endswith(("q_bias", "k_bias", "v_bias"))}
    prepared["o"] = w["o"].T
    if config.latent is None:
        prepared["qkv"] = jnp.concatenate([w["q"].T, w["k"].T, w["v"].T])
        if config.qkv_bias:
            prepared["qkv_bias"] = jnp.concatenate([w["q_bias"], w["k_bias"], w["v_bias"]])
    else:
        prepared |= {name: w[name].T for name in ("q", "q_down", "q_up", "kv_down") if name in w}
        heads = w["kv_up"].reshape(config.latent.rank, config.heads, -1)
        prepared["key_up"], prepared["value_up"] = jnp.split(heads, [config.latent.plain_size], axis=-1)
    if "gate" in w:
        prepared |= {"gate_up": jnp.concatenate([w["gate"].T, w["up"].T]), "down": w["down"].T}
    else:
        prepared |= {name: w[name] for name in parameters.OF_EXPERTS if name in w}
    return prepared


def prompts(prefilled: KeyValues, lengths: jax.Array) -> Prompts:
    """Prompts from what `decoder.prefill` gave, [L, N, K, P, d]."""
    return Prompts(tuple(prefilled.k), tuple(prefilled.v.swapaxes(3, 4)), lengths)


def empty_cache(config: DecoderConfig, rows: int, tokens: int, dtype: jnp.dtype) -> Cache:
    """Zeros, with room for `tokens` own tokens of each row, rounded up to whole blocks."""
    slots = -(-tokens // CACHE_BLOCK) * CACHE_BLOCK
    heads, *sizes = config.cache_shape
    return tuple(KeyValues(*(jnp.zeros((rows, heads, slots, d), dtype) for d in sizes)) for _ in range(config.layers))


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
    rotation = rope.rotation(config, positions[:, None])  # [B, 1, d / 2]
    x = weights.embed[tokens].T
    written = []
    for w, keys, values, own in zip(weights.layers, shared.keys, shared.values, cache, strict=True):
        q, new = _project(config, w, x, rotation)
        slot = number % own.k.shape[2]
        own = jax.tree.map(lambda c, n, slot=slot: jax.lax.dynamic_update_slice(c, n, (0, 0, slot, 0)), own, new)
        attended = _own(_prompt(q, keys, values, shared.lengths, rows), q, own, number, rows.begin)
        x = x + w["o"] @ _values(config, w, (attended.mixed / attended.total).astype(x.dtype)).T
        x = x + _mlp(config, w, rms_norm(x, w["mlp_norm"], config.norm_epsilon, axis=-2))
        written.append(own)
    return rms_norm(x, weights.final_norm, config.norm_epsilon, axis=-2), tuple(written)


def logits(weights: Weights, hidden: jax.Array) -> jax.Array:
    """Next-token logits [B, V] in float32 of hidden states [D, B]."""
    columns = jnp.matmul(weights.unembed, hidden, preferred_element_type=jnp.float32)
    # without the barrier XLA folds the transpose into the product, whose swapped form its CPU backend lacks in bfloat16
    return jax.lax.optimization_barrier(columns).T


def _project(
    config: DecoderConfig, w: Params, x: jax.Array, rotation: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, KeyValues]:
    """Scaled queries [B, K, R, d] and the new keys and values [B, K, 1, d] of activations [D, B]."""
    y = rms_norm(x, w["attn_norm"], config.norm_epsilon, axis=-2)
    if config.latent is not None:
        return _project_latent(config, w, y, rotation)
    qkv = w["qkv"] @ y
    if config.qkv_bias:
        qkv = qkv + jnp.broadcast_to(w["qkv_bias"][:, None], qkv.shape)
    heads = qkv.reshape(-1, config.head_size, x.shape[1]).transpose(2, 0, 1)[:, None]  # [B, 1, H + 2 K, d]
    q, k, v = jnp.split(heads, [config.heads, config.heads + config.key_heads], axis=2)
    if config.qk_norm:
        q, k = (rms_norm(z, w[f"{n}_norm"], config.norm_epsilon) for z, n in ((q, "q"), (k, "k")))
    q, k = rope.rotate(q, *rotation), rope.rotate(k, *rotation)
    q = (q * config.head_size**-0.5).reshape(-1, config.key_heads, config.group, config.head_size)
    return q, KeyValues(k.swapaxes(1, 2), v.swapaxes(1, 2))


def _project_latent(
    config: DecoderConfig, w: Params, y: jax.Array, rotation: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, KeyValues]:
    """As `_project`, with queries carried into the space of the latent: one key head, shared by all queries."""

    def project(z: jax.Array, name: str) -> jax.Array:
        return (w[name] @ z[:, 0].T).T[:, None]  # z [B, 1, in]

    row = y.T[:, None]
    q = latent.queries(config, w, project, row, *rotation) * config.head_size**-0.5  # [B, 1, H, d]
    plain, turned = jnp.split(q[:, 0], [latent.shape_of(config).plain_size], axis=-1)
    carried = jnp.einsum("bhp,rhp->bhr", plain, w["key_up"])
    return jnp.concatenate([carried, turned], axis=-1)[:, None], latent.cached(config, w, project, row, *rotation)


def _values(config: DecoderConfig, w: Params, mixed: jax.Array) -> jax.Array:
    """Outputs of attention [B, H value_size] from what was mixed, [B, K, R, d]."""
    if config.latent is not None:
        mixed = jnp.einsum("bhr,rhv->bhv", mixed[:, 0], w["value_up"])
    return mixed.reshape(mixed.shape[0], -1)


def _mlp(config: DecoderConfig, w: Params, y: jax.Array) -> jax.Array:
    """[D, B] -> [D, B]"""
    if config.experts is not None and "router" in w:
        return experts.mixed(config.experts, w, y.T).T
    gate, up = jnp.split(w["gate_up"] @ y, 2)
    return w["down"] @ (jax.nn.silu(gate) * up)


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
    B, K, S, _ = own.k.shape

    def block(index: jax.Array, so_far: _Softmax) -> _Softmax:
        start = index * CACHE_BLOCK % S
        k, v = (jax.lax.dynamic_slice(c, (0, 0, start, 0), (B, K, CACHE_BLOCK, c.shape[3])) for c in own)
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
