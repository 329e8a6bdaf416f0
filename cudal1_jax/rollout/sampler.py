"""Completions of prompts: each prompt is prefilled once, then its G samples are decoded together.

A compiled program decodes a chunk of tokens; the host loop between chunks reports progress and stops when all rows
have ended.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cudal1_jax.policy import decode, decoder
from cudal1_jax.policy.attention import KeyValues
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params
from cudal1_jax.rollout import draw, truncation
from cudal1_jax.rollout.options import SamplingOptions

CHUNK = 64  # tokens between two reports


@dataclasses.dataclass(frozen=True)
class Rollout:
    """Completions of N prompts, G rows each in prompt order, B = N G; arrays are on the host."""

    tokens: np.ndarray  # [B, T] int32, the stop token included, zero after the end
    lengths: np.ndarray  # [B] int32, tokens in use, at least 1
    logprobs: np.ndarray  # [B, T] float32, of the distribution drawn from (temperature, truncation); 0 after the end
    finished: np.ndarray  # [B] bool; False: cut at max_new_tokens


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a rollout stands, between two chunks."""

    step: int  # tokens per row so far
    max_new_tokens: int
    finished: int  # rows that have ended
    rows: int  # B


class _State(NamedTuple):
    """What a chunk takes and gives, B rows."""

    step: jax.Array  # [], number of the token to draw next
    hidden: jax.Array  # [D, B], predicts that token
    cache: decode.Cache
    tokens: jax.Array  # [T, B]
    logprobs: jax.Array  # [T, B]
    lengths: jax.Array  # [B]
    finished: jax.Array  # [B]


def sample(
    config: DecoderConfig,
    params: Params,
    prompt_ids: Sequence[Sequence[int]],
    group: int,
    key: jax.Array,
    options: SamplingOptions,
    prompt_numbers: Sequence[int] | None = None,
    first_sample: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Rollout:
    """Draws `group` completions of every prompt. ValueError for an empty prompt or one that leaves no room in the
    context.

    A row's random numbers depend on (key, its prompt's number, its sample's number, position) alone, so that a row
    comes out the same in any batch. Numbers default to 0, 1, ...; params are merged with any adapter.
    """
    _check(config, prompt_ids, group, options)
    numbers = list(range(len(prompt_ids))) if prompt_numbers is None else list(prompt_numbers)
    if len(numbers) != len(prompt_ids):
        raise ValueError(f"{len(prompt_ids)} prompts but {len(numbers)} prompt_numbers")
    shared, last = prefill_prompts(config, params, prompt_ids, options.prompt_bucket)
    weights = decode.prepare(config, params)
    keys = _row_keys(key, jnp.asarray(numbers), first_sample + jnp.arange(group))
    state = _begin(config, options, last, group)
    step = 0
    while step < options.max_new_tokens:
        step = min(step + CHUNK, options.max_new_tokens)
        state = _chunk(config, options, weights, shared, keys, state, jnp.int32(step))
        ended = int(np.sum(np.asarray(state.finished)))
        if progress is not None:
            progress(Progress(int(state.step), options.max_new_tokens, ended, len(keys)))
        if ended == len(keys):
            break
    return Rollout(
        tokens=np.asarray(state.tokens).T,
        lengths=np.asarray(state.lengths),
        logprobs=np.asarray(state.logprobs).T,
        finished=np.asarray(state.finished),
    )


def pad_prompts(prompt_ids: Sequence[Sequence[int]], bucket: int) -> tuple[np.ndarray, np.ndarray]:
    """Prompts [N, P] padded on the right with zeros to a common multiple of `bucket`, and their lengths [N]."""
    lengths = np.array([len(ids) for ids in prompt_ids], np.int32)
    tokens = np.zeros((len(prompt_ids), -(-int(lengths.max()) // bucket) * bucket), np.int32)
    for row, ids in enumerate(prompt_ids):
        tokens[row, : len(ids)] = ids
    return tokens, lengths


def prefill_prompts(
    config: DecoderConfig, params: Params, prompt_ids: Sequence[Sequence[int]], bucket: int
) -> tuple[decode.Prompts, jax.Array]:
    """Prefilled prompts and the hidden state [N, D] of each one's last token; every prompt is run at its own bucket."""
    parts = []
    for ids in prompt_ids:
        row, length = pad_prompts([ids], bucket)
        parts.append(_prefill(config, params, jnp.asarray(row), jnp.asarray(length)))
    size = max(cache.k.shape[3] for cache, _ in parts)

    def together(arrays: list[jax.Array]) -> jax.Array:
        return jnp.concatenate([jnp.pad(x, [(0, 0)] * 3 + [(0, size - x.shape[3]), (0, 0)]) for x in arrays], axis=1)

    cache = KeyValues(together([cache.k for cache, _ in parts]), together([cache.v for cache, _ in parts]))
    lengths = jnp.asarray([len(ids) for ids in prompt_ids], jnp.int32)
    return decode.prompts(cache, lengths), jnp.concatenate([last for _, last in parts])


_prefill = functools.partial(jax.jit, static_argnums=0)(decoder.prefill)


@jax.jit
def _row_keys(key: jax.Array, prompt_numbers: jax.Array, sample_numbers: jax.Array) -> jax.Array:
    """Keys [N G], from the key, the prompt's number and the sample's number."""
    prompt_keys = jax.vmap(jax.random.fold_in, (None, 0))(key, prompt_numbers)
    return jax.vmap(lambda k: jax.vmap(jax.random.fold_in, (None, 0))(k, sample_numbers))(prompt_keys).reshape(-1)


def _begin(config: DecoderConfig, options: SamplingOptions, last: jax.Array, group: int) -> _State:
    B, T = last.shape[0] * group, options.max_new_tokens
    return _State(
        step=jnp.int32(0),
        hidden=jnp.repeat(last, group, axis=0).T,
        cache=decode.empty_cache(config, B, T, last.dtype),
        tokens=jnp.zeros((T, B), jnp.int32),
        logprobs=jnp.zeros((T, B), jnp.float32),
        lengths=jnp.zeros(B, jnp.int32),
        finished=jnp.zeros(B, bool),
    )


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=5)
def _chunk(
    config: DecoderConfig,
    options: SamplingOptions,
    weights: decode.Weights,
    shared: decode.Prompts,
    keys: jax.Array,
    state: _State,
    stop: jax.Array,
) -> _State:
    """Draws tokens until step `stop` or until every row has ended."""

    def unfinished(state: _State) -> jax.Array:
        return (state.step < stop) & ~jnp.all(state.finished)

    def body(state: _State) -> _State:
        raw = decode.logits(weights, state.hidden)
        token, logprob = _draw(raw, draw.uniforms(keys, state.step), options)
        live = ~state.finished
        token = jnp.where(live, token, 0)
        hidden, cache = decode.step(config, weights, shared, state.cache, token, state.step)
        return _State(
            step=state.step + 1,
            hidden=hidden,
            cache=cache,
            tokens=state.tokens.at[state.step].set(token),
            logprobs=state.logprobs.at[state.step].set(jnp.where(live, logprob, 0.0)),
            lengths=state.lengths + live.astype(jnp.int32),
            finished=state.finished | (live & _is_stop(token, options.stop_ids)),
        )

    return jax.lax.while_loop(unfinished, body, state)


def _draw(logits: jax.Array, uniform: jax.Array, options: SamplingOptions) -> tuple[jax.Array, jax.Array]:
    """Tokens [B] and their log-probs in the distribution drawn from; logits [B, V]."""
    if options.temperature == 0:
        token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return token, jnp.zeros(token.shape)
    allowed = truncate(logits, options)
    token = draw.invert(allowed, uniform)
    return token, _logprob(allowed, token)


def truncate(logits: jax.Array, options: SamplingOptions) -> jax.Array:
    """Logits [B, V] of the distribution that is drawn from."""
    allowed = logits if options.temperature == 1 else logits / options.temperature
    if options.top_k is not None:
        allowed = truncation.top_k(allowed, options.top_k)
    if options.top_p < 1:
        allowed = truncation.top_p(allowed, options.top_p)
    if options.min_p > 0:
        allowed = truncation.min_p(allowed, options.min_p)
    return allowed


def _logprob(logits: jax.Array, token: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(logits, token[:, None], axis=1)[:, 0]
    return chosen - jax.nn.logsumexp(logits, axis=-1)


def _is_stop(token: jax.Array, stop_ids: tuple[int, ...]) -> jax.Array:
    stops = jnp.asarray(stop_ids, jnp.int32)
    return jnp.any(token[:, None] == stops[None, :], axis=1)


def _check(config: DecoderConfig, prompt_ids: Sequence[Sequence[int]], group: int, options: SamplingOptions) -> None:
    if group < 1:
        raise ValueError(f"group must be at least 1, not {group}")
    if not prompt_ids:
        raise ValueError("no prompts to complete")
    for number, ids in enumerate(prompt_ids):
        if not 0 < len(ids) <= config.context - options.max_new_tokens:
            raise ValueError(
                f"prompt {number} has {len(ids)} tokens; 1 to {config.context - options.max_new_tokens} fit "
                f"(context {config.context} less max_new_tokens {options.max_new_tokens})"
            )
