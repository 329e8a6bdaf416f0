"""The two programs of a rollout: one prefills a prompt into its place, one draws a chunk of tokens in every slot."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cudal1_jax.policy import decode, decoder, sharding
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params
from cudal1_jax.rollout import draw
from cudal1_jax.rollout.options import SamplingOptions
from cudal1_jax.rollout.schedule import Sizes

CHUNK = decode.CACHE_BLOCK  # tokens; rows begin only at a chunk's first step, so that their blocks are the same always


class Pool(NamedTuple):
    """Prompts that are resident."""

    prompts: decode.Prompts
    last: jax.Array  # [N, D], hidden state of each prompt's last token


class Slots(NamedTuple):
    """What is drawn in each of B slots during a chunk."""

    rows: decode.Rows
    prompt_numbers: jax.Array  # [B], of random numbers
    sample_numbers: jax.Array  # [B], of random numbers
    live: jax.Array  # [B] bool, False: the slot is idle


class State(NamedTuple):
    """What one chunk leaves to the next."""

    hidden: jax.Array  # [D, B], predicts the next token
    cache: decode.Cache


class Drawn(NamedTuple):
    """What a chunk has drawn."""

    tokens: jax.Array  # [CHUNK, B], zero after the end
    logprobs: jax.Array  # [CHUNK, B] float32, zero after the end
    counts: jax.Array  # [B], tokens of each row in this chunk
    stopped: jax.Array  # [B] bool, by a stop token
    ended: jax.Array  # [B] bool, stopped, at max_new_tokens, or idle


def empty_pool(config: DecoderConfig, params: Params, shape: Sizes, prompt_tokens: int) -> Pool:
    """Places for prompts of up to `prompt_tokens`."""
    tokens, length = jax.ShapeDtypeStruct((1, prompt_tokens), jnp.int32), jax.ShapeDtypeStruct((1,), jnp.int32)
    one = jax.eval_shape(functools.partial(_prefilled, config), params, tokens, length)
    return jax.tree.map(lambda x: jnp.zeros((shape.prompt_slots, *x.shape[1:]), x.dtype), one)


def empty_state(config: DecoderConfig, options: SamplingOptions, shape: Sizes, dtype: jnp.dtype) -> State:
    cache = decode.empty_cache(config, shape.slots, options.max_new_tokens, dtype)
    return State(jnp.zeros((config.width, shape.slots), dtype), cache)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def prefill(
    config: DecoderConfig, params: Params, pool: Pool, place: jax.Array, tokens: jax.Array, length: jax.Array
) -> Pool:
    """The pool with the prompt of tokens [1, T], length [1], at `place`; compiled for each T."""

    def put(all_prompts: jax.Array, one: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(all_prompts, one, (place, *[0] * (one.ndim - 1)))

    return jax.tree.map(put, pool, _prefilled(config, params, tokens, length))


def _prefilled(config: DecoderConfig, params: Params, tokens: jax.Array, length: jax.Array) -> Pool:
    cache, last = decoder.prefill(config, params, tokens, length)
    return Pool(decode.prompts(cache, length), last)


class _Progress(NamedTuple):
    step: jax.Array  # []
    state: State
    drawn: Drawn


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=7)
def run(
    config: DecoderConfig,
    options: SamplingOptions,
    weights: decode.Weights,
    pool: Pool,
    slots: Slots,
    key: jax.Array,
    first: jax.Array,
    state: State,
) -> tuple[State, Drawn]:
    """Draws tokens from step `first` on, CHUNK of them or until every row has ended."""
    keys = _row_keys(key, slots.prompt_numbers, slots.sample_numbers)
    begin = slots.rows.begin
    fresh = (begin == first) & slots.live
    hidden = jnp.where(fresh[None, :], pool.last[slots.rows.prompt].T, state.hidden)

    def unfinished(at: _Progress) -> jax.Array:
        return (at.step < first + CHUNK) & ~jnp.all(at.drawn.ended)

    def body(at: _Progress) -> _Progress:
        live, number = ~at.drawn.ended, at.step - first
        token, logprob = draw.tokens(
            decode.logits(weights, at.state.hidden), draw.uniforms(keys, at.step - begin), options
        )
        token = jnp.where(live, token, 0)
        stopped = live & _is_stop(token, options.stop_ids)
        rows = slots.rows._replace(begin=jnp.where(live, begin, at.step))
        state = State(*decode.step(config, weights, pool.prompts, at.state.cache, token, at.step, rows))
        drawn = Drawn(
            tokens=at.drawn.tokens.at[number].set(token),
            logprobs=at.drawn.logprobs.at[number].set(jnp.where(live, logprob, 0.0)),
            counts=at.drawn.counts + live.astype(jnp.int32),
            stopped=at.drawn.stopped | stopped,
            ended=at.drawn.ended | stopped | (at.step - begin + 1 >= options.max_new_tokens),
        )
        return _Progress(at.step + 1, state, drawn)

    at = jax.lax.while_loop(unfinished, body, _Progress(first, State(hidden, state.cache), _nothing(slots.live)))
    return at.state, sharding.whole(at.drawn)


def _nothing(live: jax.Array) -> Drawn:
    B = live.shape[0]
    return Drawn(
        tokens=jnp.zeros((CHUNK, B), jnp.int32),
        logprobs=jnp.zeros((CHUNK, B), jnp.float32),
        counts=jnp.zeros(B, jnp.int32),
        stopped=jnp.zeros(B, bool),
        ended=~live,
    )


def _row_keys(key: jax.Array, prompt_numbers: jax.Array, sample_numbers: jax.Array) -> jax.Array:
    """Keys [B], from the key, the prompt's number and the sample's number."""
    return jax.vmap(lambda p, s: jax.random.fold_in(jax.random.fold_in(key, p), s))(prompt_numbers, sample_numbers)


def _is_stop(token: jax.Array, stop_ids: tuple[int, ...]) -> jax.Array:
    stops = jnp.asarray(stop_ids, jnp.int32)
    return jnp.any(token[:, None] == stops[None, :], axis=1)
