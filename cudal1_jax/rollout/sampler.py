"""Completions of prompts by continuous batching: N prompts of G samples pass through S slots.

Each prompt is prefilled once and shared by its samples. A compiled program decodes a chunk of tokens in all slots; the
host loop between chunks reports progress and gives the slots of rows that have ended to the next ones.
"""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from cudal1_jax.policy import decode, sharding
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params
from cudal1_jax.rollout import chunk, int8, schedule
from cudal1_jax.rollout.options import SamplingOptions
from cudal1_jax.rollout.schedule import Schedule


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

    tokens: int  # drawn so far
    settled: int  # of the rows x max_new_tokens that there may be, those drawn and those that ended rows did not need
    finished: int  # rows that have ended
    rows: int  # B


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
    comes out the same in any batch and in any slot. Numbers default to 0, 1, ...; params are merged with any adapter.
    """
    _check(config, prompt_ids, group, options)
    numbers = np.asarray(range(len(prompt_ids)) if prompt_numbers is None else prompt_numbers, np.int32)
    if len(numbers) != len(prompt_ids):
        raise ValueError(f"{len(prompt_ids)} prompts but {len(numbers)} prompt_numbers")
    mesh = sharding.mesh_of(params)
    with sharding.on(mesh):
        shape = schedule.sizes(len(prompt_ids), group, options.slots)
        rows = Schedule(len(prompt_ids), group, shape)
        prompts = [pad_prompt(ids, options.prompt_bucket) for ids in prompt_ids]
        pool = chunk.empty_pool(config, params, shape, max(len(tokens) for tokens in prompts))
        weights = decode.prepare(config, params)
        if options.int8:
            weights = int8.quantised(weights)
        state = chunk.empty_state(config, options, shape, pool.last.dtype)
        pool = pool._replace(prompts=sharding.place_cache(pool.prompts, mesh))
        state = state._replace(cache=sharding.place_cache(state.cache, mesh))
        done = _nothing(len(prompt_ids) * group, options.max_new_tokens)
        step = 0
        while rows.unfinished():
            for place, prompt in rows.fill(step):
                length = np.array([len(prompt_ids[prompt])], np.int32)
                pool = chunk.prefill(config, params, pool, np.int32(place), prompts[prompt][None], length)
            slots = slots_of(rows, numbers, first_sample)
            state, drawn = chunk.run(config, options, weights, pool, slots, key, np.int32(step), state)
            _record(done, rows, jax.device_get(drawn))
            step += chunk.CHUNK
            if progress is not None:
                progress(_progress(done, rows, options.max_new_tokens))
        return done


def pad_prompt(ids: Sequence[int], bucket: int) -> np.ndarray:
    """A prompt padded on the right with zeros to a multiple of `bucket`."""
    tokens = np.zeros(-(-len(ids) // bucket) * bucket, np.int32)
    tokens[: len(ids)] = ids
    return tokens


def slots_of(rows: Schedule, numbers: np.ndarray, first_sample: int) -> chunk.Slots:
    """What the next chunk draws in each slot; `numbers` [N] are those of the prompts."""
    prompt, sample_number = rows.numbers()
    return chunk.Slots(
        rows=decode.Rows(*(jnp.asarray(x) for x in (*rows.places(), rows.begin))),
        prompt_numbers=jnp.asarray(numbers[prompt]),
        sample_numbers=jnp.asarray((first_sample + sample_number).astype(np.int32)),
        live=jnp.asarray(rows.live),
    )


def _nothing(rows: int, tokens: int) -> Rollout:
    return Rollout(
        tokens=np.zeros((rows, tokens), np.int32),
        lengths=np.zeros(rows, np.int32),
        logprobs=np.zeros((rows, tokens), np.float32),
        finished=np.zeros(rows, bool),
    )


def _record(done: Rollout, rows: Schedule, drawn: chunk.Drawn) -> None:
    """Adds a chunk to what its rows have, and frees the slots of those that have ended."""
    for slot in np.flatnonzero(rows.live):
        row, count = rows.row[slot], drawn.counts[slot]
        new = slice(done.lengths[row], done.lengths[row] + count)
        done.tokens[row, new] = drawn.tokens[:count, slot]
        done.logprobs[row, new] = drawn.logprobs[:count, slot]
        done.lengths[row] += count
        done.finished[row] = drawn.stopped[slot]
    rows.release(np.asarray(drawn.ended))


def _progress(done: Rollout, rows: Schedule, max_new_tokens: int) -> Progress:
    settled = np.where(rows.ended, max_new_tokens, done.lengths)
    return Progress(int(np.sum(done.lengths)), int(np.sum(settled)), int(np.sum(rows.ended)), len(rows.ended))


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
