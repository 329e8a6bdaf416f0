"""Log-probabilities of given tokens, without ever holding the logits of a whole batch.

The vocabulary is by far the widest layer: float32 logits of 4,000 tokens and 49,152 words take 786 MB. Here they live
for one chunk of tokens at a time, and only for positions whose log-probability is asked for.
"""

import functools

import jax
import jax.numpy as jnp

from cudal1_jax.policy import decoder
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.decoder import KeyValues, Remat
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.policy.parameters import Params, unembedding


def token_logprobs(
    hidden: jax.Array,
    table: jax.Array,
    targets: jax.Array,
    mask: jax.Array,
    *,
    temperature: float = 1.0,
    chunk: int = 512,
    table_is_trained: bool = False,
) -> jax.Array:
    """log softmax(hidden @ table.T / temperature)[target] where the mask is not 0, else 0; float32.

    hidden [B, T, D], table [V, D], targets and mask [B, T] -> [B, T]. Wanted positions are moved to the front, and
    chunks without any are skipped. With a frozen table the backward pass needs no logits: a log-probability is one
    number, so its derivative is a vector [D], which the forward pass keeps. A trained table recomputes the logits.
    """
    width = hidden.shape[-1]
    wanted = mask.reshape(-1) > 0
    order = jnp.argsort(~wanted, stable=True)
    flat = (hidden.reshape(-1, width)[order], targets.reshape(-1)[order], wanted[order])
    padding = -order.shape[0] % chunk
    chunks = jax.tree.map(lambda x: _padded(x, padding).reshape(-1, chunk, *x.shape[1:]), flat)
    some = jax.checkpoint(_logprobs) if table_is_trained else _frozen_logprobs

    def one(piece: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        piece_hidden, piece_targets, piece_wanted = piece
        return jax.lax.cond(
            piece_wanted[0],  # wanted positions come first, so a chunk that begins with none has none
            lambda: some(piece_hidden, table, piece_targets, temperature),
            lambda: jnp.zeros(chunk, jnp.float32),
        )

    sorted_logprobs = jax.lax.map(one, chunks).reshape(-1)[: order.shape[0]]
    logprobs = jnp.zeros_like(sorted_logprobs).at[order].set(sorted_logprobs, unique_indices=True)
    return jnp.where(wanted, logprobs, 0.0).reshape(targets.shape)


def completion_logprobs(
    config: DecoderConfig,
    params: Params,
    adapter: Adapter | None,
    prefix: KeyValues,
    last_hidden: jax.Array,
    prompt_lengths: jax.Array,
    tokens: jax.Array,
    mask: jax.Array,
    *,
    temperature: float,
    chunk: int,
    remat: Remat,
    row_tokens: int | None = None,
    table_is_trained: bool = False,
) -> jax.Array:
    """Log-probs [B, T] of completions [B, T] after N prompts whose pass was made once by `decoder.prefill`.

    Row b continues prompt b // (B / N): prefix [L, N, K, P, d], last_hidden [N, D], prompt_lengths [N]. The mask is 1
    on a completion's tokens, from its first to its last. They are packed, so that padding is not computed: all of a
    prompt into one row of `row_tokens`, which must hold them (None: as many as their padded rows have).
    """
    N, T = last_hidden.shape[0], tokens.shape[1]
    order = jnp.argsort(mask.reshape(N, -1) <= 0, axis=1, stable=True)[:, :row_tokens]  # [N, C] of B / N * T places

    def packed(x: jax.Array) -> jax.Array:
        return jnp.take_along_axis(x.reshape(N, -1), order, axis=1)

    own, offsets = packed(tokens), order % T
    hidden = decoder.forward_with_prefix(
        config, params, prefix, prompt_lengths, own, adapter, remat, offsets=offsets, segment_ids=order // T
    )
    before = jnp.where(offsets[..., None] == 0, last_hidden[:, None], jnp.roll(hidden, 1, axis=1))
    found = token_logprobs(
        before, unembedding(config, params), own, packed(mask),
        temperature=temperature, chunk=chunk, table_is_trained=table_is_trained,
    )  # fmt: skip
    places = jnp.zeros(mask.shape, jnp.float32).reshape(N, -1)
    return places.at[jnp.arange(N)[:, None], order].set(found, unique_indices=True).reshape(mask.shape)


def next_token_logprobs(
    config: DecoderConfig,
    params: Params,
    adapter: Adapter | None,
    tokens: jax.Array,
    positions: jax.Array,
    segment_ids: jax.Array,
    targets: jax.Array,
    mask: jax.Array,
    *,
    chunk: int,
    remat: Remat,
    fused_attention: bool = False,
    table_is_trained: bool = False,
) -> jax.Array:
    """Log-probs [B, T] of `targets` after each position of packed rows; segments do not see each other."""
    hidden = decoder.forward(config, params, tokens, positions, segment_ids, adapter, remat, fused_attention)
    table = unembedding(config, params)
    return token_logprobs(hidden, table, targets, mask, chunk=chunk, table_is_trained=table_is_trained)


def _logits(hidden: jax.Array, table: jax.Array, temperature: float) -> jax.Array:
    return jnp.einsum("td,vd->tv", hidden, table, preferred_element_type=jnp.float32) / temperature


def _logprobs(hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float) -> jax.Array:
    """Log-probs [C] of one chunk: hidden [C, D], targets [C]."""
    logits = _logits(hidden, table, temperature)
    chosen = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return chosen - jax.nn.logsumexp(logits, axis=1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _frozen_logprobs(hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float) -> jax.Array:
    return _logprobs(hidden, table, targets, temperature)


def _frozen_forward(
    hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float
) -> tuple[jax.Array, jax.Array]:
    """Also d logprob / d hidden [C, D] = (row of the target - mean row) / temperature."""
    logits = _logits(hidden, table, temperature)
    chosen = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    log_normaliser = jax.nn.logsumexp(logits, axis=1)
    probabilities = jnp.exp(logits - log_normaliser[:, None]).astype(table.dtype)
    mean_row = jnp.einsum("tv,vd->td", probabilities, table, preferred_element_type=jnp.float32)
    derivative = (table[targets].astype(jnp.float32) - mean_row) / temperature
    return chosen - log_normaliser, derivative.astype(hidden.dtype)


def _frozen_backward(temperature: float, derivative: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, None, None]:
    return cotangent.astype(derivative.dtype)[:, None] * derivative, None, None


_frozen_logprobs.defvjp(_frozen_forward, _frozen_backward)


def _padded(x: jax.Array, amount: int) -> jax.Array:
    return jnp.pad(x, [(0, amount)] + [(0, 0)] * (x.ndim - 1))
