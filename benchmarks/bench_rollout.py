"""Rollout speed of the embedded policy: `python benchmarks/bench_rollout.py [--tokens=64] [--dtype=float32]`.

One row per prompt length and group size. `first call` compiles; the other columns are of a second call with the same
shapes. `cores` is processor time over wall time: below the number of cores, something else was using the machine.
"""

import dataclasses
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from cudal1_jax.policy import gguf
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params
from cudal1_jax.rollout import sampler
from cudal1_jax.rollout.options import SamplingOptions

TOKENS = flags.DEFINE_integer("tokens", 64, "new tokens per row, none of which stops a row")
DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "of weights, activations and cache")
PROMPTS = flags.DEFINE_multi_integer("prompt", [128, 1100], "prompt lengths in tokens")
GROUPS = flags.DEFINE_multi_integer("group", [1, 8], "samples per prompt")
TOP_P = flags.DEFINE_float("top_p", 1.0, "probability mass kept")


@dataclasses.dataclass(frozen=True)
class Timing:
    """One call of `sampler.sample`."""

    prefill_s: float  # wall time of the prompt alone
    total_s: float  # wall time of the whole call
    cores: float  # processor time over wall time


def measure(
    config: DecoderConfig, params: Params, prompt: list[int], group: int, options: SamplingOptions, seed: int
) -> Timing:
    start = time.perf_counter()
    jax.block_until_ready(sampler.prefill_prompts(config, params, [prompt], 128))
    prefill_s = time.perf_counter() - start
    start, processor = time.perf_counter(), time.process_time()
    sampler.sample(config, params, [prompt], group, jax.random.key(seed), options)
    total_s = time.perf_counter() - start
    return Timing(prefill_s, total_s, (time.process_time() - processor) / total_s)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unknown arguments {argv[1:]}")
    config, params = gguf.load(dtype=jnp.dtype(DTYPE.value))
    options = SamplingOptions(max_new_tokens=TOKENS.value, top_p=TOP_P.value)
    print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {DTYPE.value}, {TOKENS.value} new tokens per row")
    print(
        f"{'prompt':>6} {'group':>5} {'first call s':>12} {'prefill s':>9} {'ms/step':>8} {'tokens/s':>8} {'cores':>5}"
    )
    for length in PROMPTS.value:
        prompt = np.random.default_rng(length).integers(17, config.vocabulary, length).tolist()
        for group in GROUPS.value:
            first = measure(config, params, prompt, group, options, seed=0)
            second = measure(config, params, prompt, group, options, seed=1)
            decode_s = second.total_s - second.prefill_s
            print(
                f"{length:>6} {group:>5} {first.prefill_s + first.total_s - second.prefill_s:>12.1f}"
                f" {second.prefill_s:>9.2f} {decode_s / TOKENS.value * 1e3:>8.1f}"
                f" {group * TOKENS.value / decode_s:>8.1f} {second.cores:>5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    app.run(main)
