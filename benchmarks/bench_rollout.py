"""Rollout speed of the embedded policy: `python benchmarks/bench_rollout.py [--tokens=64] [--dtype=float32]`.

    python benchmarks/bench_rollout.py --prompt=300 --group=8 --prompts=8 --slots=8 --slots=32 --lengths

One row per prompt length, group size and number of slots. `first call` compiles; the other columns are of a second
call with the same shapes. `cores` is processor time over wall time: below the number of cores, something else was using
the machine, and `CPU ms` per token says more than the others. With `--lengths` rows end by chance, half of them within
a third of `--tokens`; otherwise none ends early.
"""

import dataclasses
import itertools
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from cudal1_jax.policy import gguf
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params
from cudal1_jax.rollout import chunk, sampler, schedule
from cudal1_jax.rollout.options import SamplingOptions

TOKENS = flags.DEFINE_integer("tokens", 64, "new tokens per row, none of which stops a row")
DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "of weights, activations and cache")
PROMPTS = flags.DEFINE_multi_integer("prompt", [128, 1100], "prompt lengths in tokens")
GROUPS = flags.DEFINE_multi_integer("group", [1, 8], "samples per prompt")
COUNT = flags.DEFINE_integer("prompts", 1, "prompts, all of the same length")
SLOTS = flags.DEFINE_multi_integer("slots", [32], "rows decoded together")
LENGTHS = flags.DEFINE_bool("lengths", False, "rows end by chance")
TOP_P = flags.DEFINE_float("top_p", 1.0, "probability mass kept")


@dataclasses.dataclass(frozen=True)
class Timing:
    """One call of `sampler.sample`."""

    prefill_s: float  # wall time of the prompts alone
    total_s: float  # wall time of the whole call
    processor_s: float  # processor time of the whole call
    tokens: int  # drawn by all rows


def prefill(config: DecoderConfig, params: Params, prompts: list[list[int]], options: SamplingOptions) -> None:
    shape = schedule.sizes(len(prompts), 1, len(prompts))
    padded = [sampler.pad_prompt(ids, options.prompt_bucket) for ids in prompts]
    pool = chunk.empty_pool(config, params, shape, len(padded[0]))
    for place, tokens in enumerate(padded):
        length = np.array([len(prompts[place])], np.int32)
        pool = chunk.prefill(config, params, pool, np.int32(place), tokens[None], length)
    jax.block_until_ready(pool)


def measure(
    config: DecoderConfig, params: Params, prompts: list[list[int]], group: int, options: SamplingOptions
) -> Timing:
    prefill(config, params, prompts, options)
    start = time.perf_counter()
    prefill(config, params, prompts, options)
    prefill_s = time.perf_counter() - start
    start, processor = time.perf_counter(), time.process_time()
    drawn = sampler.sample(config, params, prompts, group, jax.random.key(1), options)
    total_s, processor_s = time.perf_counter() - start, time.process_time() - processor
    return Timing(prefill_s, total_s, processor_s, int(np.sum(drawn.lengths)))


def stop_ids(vocabulary: int) -> tuple[int, ...]:
    """So many tokens that a row of random text ends within a third of the limit half of the time."""
    share = 1 - 0.5 ** (3 / TOKENS.value)
    return tuple(range(0, vocabulary, max(1, round(1 / share)))) if LENGTHS.value else ()


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unknown arguments {argv[1:]}")
    config, params = gguf.load(dtype=jnp.dtype(DTYPE.value))
    print(
        f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {DTYPE.value}, {COUNT.value} prompts, at most"
        f" {TOKENS.value} new tokens per row"
    )
    print(
        f"{'prompt':>6} {'group':>5} {'slots':>5} {'first call s':>12} {'prefill s':>9} {'decode s':>8} {'tokens':>6}"
        f" {'tokens/s':>8} {'CPU ms':>6} {'cores':>5}"
    )
    for length, group, slots in itertools.product(PROMPTS.value, GROUPS.value, SLOTS.value):
        draw = np.random.default_rng(length)
        prompts = [draw.integers(17, config.vocabulary, length).tolist() for _ in range(COUNT.value)]
        options = SamplingOptions(
            max_new_tokens=TOKENS.value, top_p=TOP_P.value, slots=slots, stop_ids=stop_ids(config.vocabulary)
        )
        start = time.perf_counter()
        sampler.sample(config, params, prompts, group, jax.random.key(0), options)
        first_s = time.perf_counter() - start
        second = measure(config, params, prompts, group, options)
        decode_s = second.total_s - second.prefill_s
        print(
            f"{length:>6} {group:>5} {slots:>5} {first_s:>12.1f} {second.prefill_s:>9.2f} {decode_s:>8.2f}"
            f" {second.tokens:>6} {second.tokens / decode_s:>8.1f} {second.processor_s / second.tokens * 1e3:>6.1f}"
            f" {second.processor_s / second.total_s:>5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    app.run(main)
