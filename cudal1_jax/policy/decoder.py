"""The decoder's compute: pure functions of a dict of stacked arrays; layers of one form are run by one `lax.scan`.

Sequences are padded on the right. Causal attention keeps padding out of real positions, so it needs no mask, and none
may be derived from token ids: the padding id is also the end-of-turn token inside every chat prompt.
"""

import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

from cudal1_jax.policy import attention, experts, fused, latent, parameters, rope, sharding
from cudal1_jax.policy.attention import KeyValues, Prefix
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.policy.norm import rms_norm
from cudal1_jax.policy.parameters import Params, Stack, unembedding

Project = Callable[[jax.Array, str], jax.Array]
Remat = Literal["none", "layer", "dots"]


def forward(
    config: DecoderConfig,
    params: Params,
    tokens: jax.Array,
    positions: jax.Array | None = None,
    segment_ids: jax.Array | None = None,
    adapter: Adapter | None = None,
    remat: Remat = "none",
    fused_attention: bool = False,
) -> jax.Array:
    """Final hidden states [B, T, D] of tokens [B, T]; hidden[:, t] predicts token t + 1.

    positions [B, T] default to 0, 1, ...; segment_ids [B, T] keep packed sequences apart. `remat` is what the
    backward pass computes again to save memory: nothing, each layer whole, or each layer but its products by weights
    ("dots"). Attention scores are recomputed in any case: they alone grow with T squared.
    `fused_attention`: cuDNN's kernels, for long packed rows on a GPU (see `fused`).
    """
    positions = _positions(tokens, positions)
    hidden, _ = _run(config, params, tokens, positions, segment_ids, None, adapter, remat, fused_attention)
    return hidden


def prefill(
    config: DecoderConfig,
    params: Params,
    tokens: jax.Array,
    lengths: jax.Array,
    cache_size: int | None = None,
    adapter: Adapter | None = None,
    remat: Remat = "none",
) -> tuple[KeyValues, jax.Array]:
    """Keys and values [L, N, K, P, d] of prompts [N, T] and the hidden state [N, D] of each one's last token.

    lengths [N] are at least 1. P is `cache_size`, at least T, or T. Differentiable, for a prompt shared in a loss.
    """
    N, T = tokens.shape
    hidden, cache = _run(config, params, tokens, _positions(tokens, None), None, None, adapter, remat)
    if cache_size is not None:
        if cache_size < T:
            raise ValueError(f"cache_size ({cache_size}) is smaller than the prompts ({T} tokens)")
        cache = jax.tree.map(lambda x: jnp.pad(x, [(0, 0)] * 3 + [(0, cache_size - T), (0, 0)]), cache)
    return cache, hidden[jnp.arange(N), lengths - 1]


def forward_with_prefix(
    config: DecoderConfig,
    params: Params,
    prefix: KeyValues,
    prefix_lengths: jax.Array,
    tokens: jax.Array,
    adapter: Adapter | None = None,
    remat: Remat = "none",
    offsets: jax.Array | None = None,
    segment_ids: jax.Array | None = None,
) -> jax.Array:
    """Final hidden states [B, T, D] of tokens [B, T] that continue N prompts; row b continues prompt b // (B / N).

    prefix [L, N, K, P, d] comes from `prefill`: inside the same differentiated function, gradients reach the prompt.
    offsets [B, T], from the prompt's end, default to 0, 1, ...; with segment_ids [B, T] several continuations of a
    prompt lie in one row.
    """
    B, N = tokens.shape[0], prefix_lengths.shape[0]
    if B % N:
        raise ValueError(f"{B} rows cannot be shared evenly by {N} prompts")
    positions = jnp.repeat(prefix_lengths, B // N)[:, None] + _positions(tokens, offsets)
    hidden, _ = _run(config, params, tokens, positions, segment_ids, (prefix, prefix_lengths), adapter, remat)
    return hidden


def logits(config: DecoderConfig, params: Params, hidden: jax.Array) -> jax.Array:
    """Next-token logits [..., V] in float32 of hidden states [..., D]."""
    return jnp.einsum("...d,vd->...v", hidden, unembedding(config, params), preferred_element_type=jnp.float32)


def _run(
    config: DecoderConfig,
    params: Params,
    tokens: jax.Array,
    positions: jax.Array,
    segment_ids: jax.Array | None,
    prefix: tuple[KeyValues, jax.Array] | None,
    adapter: Adapter | None,
    remat: Remat,
    fused_attention: bool = False,
) -> tuple[jax.Array, KeyValues]:
    """Hidden states [B, T, D] and all layers' keys and values [L, B, K, T, d]."""
    cos, sin = rope.rotation(config, positions)
    attend = _attention(config, params, segment_ids, fused_attention)

    def body(stack: Stack, x: jax.Array, xs: tuple) -> tuple[jax.Array, KeyValues]:
        weights, low_rank, before = xs
        project = _projection(weights, low_rank, 0.0 if adapter is None else adapter.scale)
        y = rms_norm(x, weights["attn_norm"], config.norm_epsilon)
        q, own = _queries_and_cached(config, weights, project, y, cos, sin)
        mixed = attend(project, q, own, None if prefix is None else Prefix(before, prefix[1]))
        x = x + project(mixed.reshape(*x.shape[:2], -1), "o")
        y = rms_norm(x, weights["mlp_norm"], config.norm_epsilon)
        x = x + _mlp(config, stack, weights, project, y)
        return sharding.divide_rows(x), own

    x, caches = params["embed"][tokens], []
    for stack in parameters.stacks(config):
        low_rank = None if adapter is None else parameters.of_stack(stack, adapter.weights)
        before = None if prefix is None else _rows(prefix[0], stack)
        layer = _rematerialised(functools.partial(body, stack), remat)
        x, cache = jax.lax.scan(layer, x, (parameters.of_stack(stack, params), low_rank, before))
        caches.append(cache)
    cache = caches[0] if len(caches) == 1 else jax.tree.map(lambda *parts: jnp.concatenate(parts), *caches)
    return rms_norm(x, params["final_norm"], config.norm_epsilon), cache


def _rows(cache: KeyValues, stack: Stack) -> KeyValues:
    whole = cache.k.shape[0] == stack.last - stack.first
    return cache if whole else jax.tree.map(lambda leaf: leaf[stack.first : stack.last], cache)


def _rematerialised(layer: Callable, remat: Remat) -> Callable:
    if remat == "none":
        return layer
    dots = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    return jax.checkpoint(layer, policy=dots if remat == "dots" else None)


def _projection(weights: Params, low_rank: dict | None, scale: float) -> Project:
    """y [..., in], name -> [..., out]: by the weight of that name, its adapter and its bias."""

    def project(y: jax.Array, name: str) -> jax.Array:
        out = y @ weights[name]
        if low_rank is not None and name in low_rank:
            pair = low_rank[name]
            out = out + (y @ pair["a"] @ pair["b"]).astype(out.dtype) * scale
        bias = weights.get(f"{name}_bias")
        return out if bias is None else out + jnp.broadcast_to(bias, out.shape)

    return project


def _queries_and_cached(
    config: DecoderConfig, weights: Params, project: Project, y: jax.Array, cos: jax.Array, sin: jax.Array
) -> tuple[jax.Array, KeyValues]:
    """Queries [B, T, H, d] of activations [B, T, D], and what a cache keeps of them."""
    if config.latent is not None:
        arguments = (config, weights, project, y, cos, sin)
        return latent.queries(*arguments), latent.cached(*arguments)
    q, k, v = (project(y, name).reshape(*y.shape[:2], -1, config.head_size) for name in ("q", "k", "v"))
    if config.qk_norm:
        q, k = (rms_norm(x, weights[f"{n}_norm"], config.norm_epsilon) for x, n in ((q, "q"), (k, "k")))
    q, k = rope.rotate(q, cos, sin), rope.rotate(k, cos, sin)
    return q, KeyValues(k.swapaxes(1, 2), v.swapaxes(1, 2))


def _attention(config: DecoderConfig, params: Params, segment_ids: jax.Array | None, fused_attention: bool) -> Callable:
    """Maps (project, queries [B, T, H, d], what is cached of these tokens, prefix) to [B, T, H, size of a value]."""
    if fused_attention and config.latent is not None:
        raise ValueError("fused attention needs keys and values of one size: it is not for latent attention")
    bias = None
    if fused_attention and segment_ids is not None:
        bias = fused.segment_bias(segment_ids, params["embed"].dtype)

    def attend(project: Project, q: jax.Array, own: KeyValues, prefix: Prefix | None) -> jax.Array:
        if fused_attention:
            return fused.attend(q, own, bias)
        if config.latent is not None:
            own = latent.expand(config, project, own)
            if prefix is not None:
                prefix = Prefix(latent.expand(config, project, prefix.keys), prefix.lengths)
        return attention.causal(q, own, segment_ids, prefix)

    return attend


def _mlp(config: DecoderConfig, stack: Stack, weights: Params, project: Project, y: jax.Array) -> jax.Array:
    if config.experts is not None and stack.routed:
        return experts.mixed(config.experts, weights, y)
    return project(jax.nn.silu(project(y, "gate")) * project(y, "up"), "down")


def _positions(tokens: jax.Array, positions: jax.Array | None) -> jax.Array:
    return jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape) if positions is None else positions
