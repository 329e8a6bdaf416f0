"""The decoder's compute: pure functions of a dict of stacked arrays, layers run by `lax.scan`.

Sequences are padded on the right. Causal attention keeps padding out of real positions, so it needs no mask, and none
may be derived from token ids: the padding id is also the end-of-turn token inside every chat prompt.
"""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

from cudal1_jax.policy import attention, fused, sharding
from cudal1_jax.policy.attention import KeyValues, Prefix
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.policy.parameters import LAYER_PARAMETERS, Params, unembedding

Attend = Callable[[jax.Array, KeyValues], jax.Array]
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
    cos, sin = attention.rotation(positions, config.head_size, config.rope_theta)
    scale = 0.0 if adapter is None else adapter.scale
    bias = (
        fused.segment_bias(segment_ids, params["embed"].dtype) if fused_attention and segment_ids is not None else None
    )

    def body(x: jax.Array, xs: tuple) -> tuple[jax.Array, KeyValues]:
        weights, low_rank, before = xs
        produced: list[KeyValues] = []

        def attend(q: jax.Array, own: KeyValues) -> jax.Array:
            if fused_attention:
                return fused.attend(q, own, bias)
            shared = None if prefix is None else Prefix(before, prefix[1])
            return attention.causal(q, own, segment_ids, shared)

        def remember(q: jax.Array, own: KeyValues) -> jax.Array:
            produced.append(own)
            return attend(q, own)

        x = _layer(config, weights, x, cos, sin, remember, None if low_rank is None else (low_rank, scale))
        return sharding.divide_rows(x), produced[0]

    layers = {name: params[name] for name in LAYER_PARAMETERS}
    stacked = (layers, None if adapter is None else adapter.weights, None if prefix is None else prefix[0])
    x, cache = jax.lax.scan(_rematerialised(body, remat), params["embed"][tokens], stacked)
    return _norm(x, params["final_norm"], config.norm_epsilon), cache


def _rematerialised(layer: Callable, remat: Remat) -> Callable:
    if remat == "none":
        return layer
    dots = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    return jax.checkpoint(layer, policy=dots if remat == "dots" else None)


def _layer(
    config: DecoderConfig,
    weights: Params,
    x: jax.Array,
    cos: jax.Array,
    sin: jax.Array,
    attend: Attend,
    low_rank: tuple[dict, float] | None,
) -> jax.Array:
    """One residual block: x [B, T, D] -> [B, T, D]; `attend` maps queries [B, T, H, d] and own keys to [B, T, H, d]."""
    B, T, _ = x.shape

    def project(y: jax.Array, name: str) -> jax.Array:
        out = y @ weights[name]
        if low_rank is not None and name in low_rank[0]:
            pair = low_rank[0][name]
            out = out + (y @ pair["a"] @ pair["b"]).astype(out.dtype) * low_rank[1]
        return out

    y = _norm(x, weights["attn_norm"], config.norm_epsilon)
    q, k, v = (project(y, name).reshape(B, T, -1, config.head_size) for name in ("q", "k", "v"))
    q, k = attention.rotate(q, cos, sin), attention.rotate(k, cos, sin)
    mixed = attend(q, KeyValues(k.swapaxes(1, 2), v.swapaxes(1, 2)))
    x = x + project(mixed.reshape(B, T, -1), "o")
    y = _norm(x, weights["mlp_norm"], config.norm_epsilon)
    return x + project(jax.nn.silu(project(y, "gate")) * project(y, "up"), "down")


def _norm(x: jax.Array, weight: jax.Array, epsilon: float) -> jax.Array:
    """RMSNorm, statistics in float32."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + epsilon)
    return wide.astype(x.dtype) * jnp.broadcast_to(weight, x.shape)


def _positions(tokens: jax.Array, positions: jax.Array | None) -> jax.Array:
    return jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape) if positions is None else positions
