"""Log-probabilities of given tokens and entropies, without ever holding the logits of a whole batch.

The vocabulary is by far the widest layer: float32 logits of 4,000 tokens and 49,152 words take 786 MB. Here they live
for one chunk of tokens at a time, and only for positions whose log-probability is asked for.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cudal1_jax.policy import decoder
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.decoder import KeyValues, Remat
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.policy.parameters import Params, unembedding


class TokenScores(NamedTuple):
    """What the vocabulary's layer says of each position; 0 where the mask is."""

    logprobs: jax.Array  # [B, T] float32, of the target
    entropy: jax.Array  # [B, T] float32, of the whole distribution, in nats


class CompletionScores(NamedTuple):
    """What a policy, and a critic where there is one, say of completions; 0 where the mask is."""

    logprobs: jax.Array  # [B, T] float32
    entropy: jax.Array  # [B, T] float32, nats
    values: jax.Array | None  # [B, T] float32, before each token; None without a critic


def token_scores(
    hidden: jax.Array,
    table: jax.Array,
    targets: jax.Array,
    mask: jax.Array,
    *,
    temperature: float = 1.0,
    chunk: int = 512,
    table_is_trained: bool = False,
    entropy_gradient: bool = False,
) -> TokenScores:
    """log softmax(hidden @ table.T / temperature)[target], and that distribution's entropy.

    hidden [B, T, D], table [V, D], targets and mask [B, T]. Wanted positions are moved to the front, and chunks without
    any are skipped. With a frozen table the backward pass needs no logits: a log-probability is one number, so its
    derivative is a vector [D], which the forward pass keeps. A trained table recomputes the logits. The entropy is a
    constant, unless `entropy_gradient`, which takes one more product with the table.
    """
    width = hidden.shape[-1]
    wanted = mask.reshape(-1) > 0
    order = jnp.argsort(~wanted, stable=True)
    flat = (hidden.reshape(-1, width)[order], targets.reshape(-1)[order], wanted[order])
    padding = -order.shape[0] % chunk
    chunks = jax.tree.map(lambda x: _padded(x, padding).reshape(-1, chunk, *x.shape[1:]), flat)
    of_chunk = _trained_scores if table_is_trained else _frozen_scores

    def one(piece: tuple[jax.Array, jax.Array, jax.Array]) -> TokenScores:
        piece_hidden, piece_targets, piece_wanted = piece
        return jax.lax.cond(
            piece_wanted[0],  # wanted positions come first, so a chunk that begins with none has none
            lambda: of_chunk(piece_hidden, table, piece_targets, temperature, entropy_gradient),
            lambda: TokenScores(jnp.zeros(chunk, jnp.float32), jnp.zeros(chunk, jnp.float32)),
        )

    def in_place(found: jax.Array) -> jax.Array:
        found = found.reshape(-1)[: order.shape[0]]
        found = jnp.zeros_like(found).at[order].set(found, unique_indices=True)
        return jnp.where(wanted, found, 0.0).reshape(targets.shape)

    return jax.tree.map(in_place, jax.lax.map(one, chunks))


def completion_scores(
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
    entropy_gradient: bool = False,
    critic: Callable[[jax.Array], jax.Array] | None = None,
) -> CompletionScores:
    """Log-probs and entropies of completions [B, T] after N prompts whose pass was made once by `decoder.prefill`.

    Row b continues prompt b // (B / N): prefix [L, N, K, P, d], last_hidden [N, D], prompt_lengths [N]. The mask is 1
    on a completion's tokens, from its first to its last. They are packed, so that padding is not computed: all of a
    prompt into one row of `row_tokens`, which must hold them (None: as many as their padded rows have). `critic` gives
    the values [..., T] of hidden states [..., T, D].
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
    scores = token_scores(
        before, unembedding(config, params), own, packed(mask), temperature=temperature, chunk=chunk,
        table_is_trained=table_is_trained, entropy_gradient=entropy_gradient,
    )  # fmt: skip

    def unpacked(found: jax.Array) -> jax.Array:
        places = jnp.zeros(mask.shape, jnp.float32).reshape(N, -1)
        return places.at[jnp.arange(N)[:, None], order].set(found, unique_indices=True).reshape(mask.shape)

    values = None if critic is None else unpacked(critic(before)) * mask
    return CompletionScores(unpacked(scores.logprobs), unpacked(scores.entropy), values)


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
    return token_scores(hidden, table, targets, mask, chunk=chunk, table_is_trained=table_is_trained).logprobs


class _Softmax(NamedTuple):
    """The distributions of one chunk of C tokens."""

    scores: TokenScores  # [C]
    logits: jax.Array  # [C, V] float32
    log_normaliser: jax.Array  # [C, 1]
    probabilities: jax.Array  # [C, V]


def _softmax(hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float) -> _Softmax:
    logits = jnp.einsum("td,vd->tv", hidden, table, preferred_element_type=jnp.float32) / temperature
    log_normaliser = jax.nn.logsumexp(logits, axis=1, keepdims=True)
    probabilities = jnp.exp(logits - log_normaliser)
    chosen = jnp.take_along_axis(logits, targets[:, None], axis=1) - log_normaliser
    entropy = log_normaliser[:, 0] - jnp.sum(probabilities * logits, axis=1)
    return _Softmax(TokenScores(chosen[:, 0], entropy), logits, log_normaliser, probabilities)


@functools.partial(jax.checkpoint, static_argnums=(3, 4))
def _trained_scores(
    hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float, entropy_gradient: bool
) -> TokenScores:
    """Scores [C] of one chunk: hidden [C, D], targets [C]."""
    logprobs, entropy = _softmax(hidden, table, targets, temperature).scores
    return TokenScores(logprobs, entropy if entropy_gradient else jax.lax.stop_gradient(entropy))


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _frozen_scores(
    hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float, entropy_gradient: bool
) -> TokenScores:
    return _softmax(hidden, table, targets, temperature).scores


def _frozen_forward(
    hidden: jax.Array, table: jax.Array, targets: jax.Array, temperature: float, entropy_gradient: bool
) -> tuple[TokenScores, tuple[jax.Array, jax.Array | None]]:
    """Also d logprob / d hidden [C, D] = (row of the target - mean row) / temperature, and that of the entropy.

    dH / d logit_v = -p_v (log p_v + H).
    """
    scores, logits, log_normaliser, probabilities = _softmax(hidden, table, targets, temperature)

    def rows(weights: jax.Array) -> jax.Array:
        return jnp.einsum("tv,vd->td", weights.astype(table.dtype), table, preferred_element_type=jnp.float32)

    of_chosen = (table[targets].astype(jnp.float32) - rows(probabilities)) / temperature
    of_entropy = None
    if entropy_gradient:
        of_entropy = -rows(probabilities * (logits - log_normaliser + scores.entropy[:, None])) / temperature
    derivatives = jax.tree.map(lambda x: x.astype(hidden.dtype), (of_chosen, of_entropy))
    return scores, derivatives


def _frozen_backward(
    temperature: float,
    entropy_gradient: bool,
    derivatives: tuple[jax.Array, jax.Array | None],
    cotangents: TokenScores,
) -> tuple[jax.Array, None, None]:
    of_chosen, of_entropy = derivatives
    gradient = cotangents.logprobs.astype(of_chosen.dtype)[:, None] * of_chosen
    if of_entropy is not None:
        gradient += cotangents.entropy.astype(of_entropy.dtype)[:, None] * of_entropy
    return gradient, None, None


_frozen_scores.defvjp(_frozen_forward, _frozen_backward)


def _padded(x: jax.Array, amount: int) -> jax.Array:
    return jnp.pad(x, [(0, amount)] + [(0, 0)] * (x.ndim - 1))
