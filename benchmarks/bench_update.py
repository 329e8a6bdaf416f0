"""What one update costs: time of each part, tokens a second, memory. Reports, never fails.

    python benchmarks/bench_update.py                                                # GRPO as in the main job
    python benchmarks/bench_update.py --objective=sft --dtype=bfloat16 --fused       # stage 1 on a GPU

The weights are random, of SmolLM2-135M's shape: time does not depend on their values. The first line of a part includes
its compilation. `cpu s` is processor time of all threads: on a busy machine it says more than `wall s`.
"""

import argparse
import dataclasses
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cudal1_jax.learn import batch, losses, objectives, optimizer, step
from cudal1_jax.policy import lora, parameters
from cudal1_jax.policy.config import DecoderConfig

SMOLLM2_135M = DecoderConfig(
    layers=30, width=576, mlp_width=1536, heads=9, key_heads=3, head_size=64, vocabulary=49152, rope_theta=1e5,
    norm_epsilon=1e-5, context=8192, tied_embeddings=True,
)  # fmt: skip


def main() -> None:
    options = _parser().parse_args()
    print(f"{options} on {jax.devices()[0].device_kind}, jax {jax.__version__}", flush=True)
    print(f"{'part':<16}{'call':>6}{'wall s':>9}{'cpu s':>9}{'tokens/s':>11}{'peak host GB':>14}{'peak device GB':>16}")
    params = parameters.init(jax.random.key(0), SMOLLM2_135M, jnp.dtype(options.dtype))
    adapter = lora.init(jax.random.key(1), SMOLLM2_135M, options.rank)
    parts = grpo(options, params, adapter) if options.objective == "grpo" else sft(options, params, adapter)
    for name, tokens, call in parts:
        for number in range(1, options.calls + 1):
            wall_s, cpu_s = timed(call)
            rate = f"{wall_s:>9.2f}{cpu_s:>9.1f}{tokens / wall_s:>11,.0f}"
            print(f"{name:<16}{number:>6}{rate}{host_gb():>14.1f}{device_gb():>16}", flush=True)


def grpo(options: argparse.Namespace, params: dict, adapter: lora.Adapter) -> Iterator[tuple[str, int, Callable]]:
    """Reference log-probs and update of one prompt with its completions, whose lengths spread by a third."""
    draw = np.random.default_rng(0)
    words = SMOLLM2_135M.vocabulary
    lengths = np.linspace(2 / 3, 4 / 3, options.group) * options.completion_tokens
    ids = [draw.integers(0, words, int(length)).tolist() for length in lengths]
    prompts = batch.prompts([draw.integers(0, words, options.prompt_tokens).tolist()], bucket=options.prompt_bucket)
    rows = batch.completions(
        ids,
        advantages=draw.normal(size=options.group).tolist(),
        sampler_logprobs=[[-1.0] * len(row) for row in ids],
        bucket=max(map(len, ids)),
    )
    tokens = options.prompt_tokens + sum(map(len, ids))
    shared, rows = batch.split(
        prompts, rows, slices=1, micro_batches=options.micro_batches, bucket=options.completion_bucket
    )
    print(f"{tokens} real tokens; prompt {shared.tokens.size}, completions {options.micro_batches} x {rows.row_tokens}")
    score = objectives.make_scorer(SMOLLM2_135M, temperature=1.0, compute_dtype=jnp.dtype(options.dtype))
    yield "reference", tokens, lambda: score(adapter, params, shared, rows)

    rows = dataclasses.replace(rows, reference_logprobs=score(adapter, params, shared, rows).logprobs)
    objective = objectives.grpo(
        SMOLLM2_135M, clip_low=0.2, clip_high=0.28, kl=losses.kl_k3, kl_weight=0.02, aggregate=losses.token_mean,
        temperature=1.0, compute_dtype=jnp.dtype(options.dtype), remat=options.remat,
    )  # fmt: skip
    yield "update", tokens, updating(objective, adapter, params, shared, rows)


def sft(options: argparse.Namespace, params: dict, adapter: lora.Adapter) -> Iterator[tuple[str, int, Callable]]:
    """Update on full rows of segments of a third to two thirds of a request."""
    shape = (1, options.micro_batches, options.rows // options.micro_batches, options.row_tokens)
    draw = np.random.default_rng(0)
    segment = np.repeat(np.arange(1, 1 + options.row_tokens), options.prompt_tokens // 2)[: options.row_tokens]
    position = np.arange(options.row_tokens) % (options.prompt_tokens // 2)
    rows = batch.PackedRows(
        tokens=jnp.asarray(draw.integers(0, SMOLLM2_135M.vocabulary, shape), jnp.int32),
        targets=jnp.asarray(draw.integers(0, SMOLLM2_135M.vocabulary, shape), jnp.int32),
        mask=jnp.broadcast_to(jnp.asarray(position >= options.prompt_tokens // 4, jnp.float32), shape),
        positions=jnp.broadcast_to(jnp.asarray(position, jnp.int32), shape),
        segment_ids=jnp.broadcast_to(jnp.asarray(segment, jnp.int32), shape),
    )
    objective = objectives.cross_entropy(
        SMOLLM2_135M, compute_dtype=jnp.dtype(options.dtype), chunk=options.chunk, remat=options.remat,
        fused_attention=options.fused,
    )  # fmt: skip
    yield "update", int(np.prod(shape)), updating(objective, adapter, params, (), rows)


def updating(objective: step.Objective, adapter: lora.Adapter, params: dict, shared: Any, rows: Any) -> Callable:
    """A call that makes one update after another, as training does."""
    transform = optimizer.build(1e-4, clip_norm=1.0)
    update = step.make_update(objective, transform)
    state = step.init(adapter, transform)

    def call() -> Any:
        nonlocal state
        state, metrics = update(state, params, shared, rows)
        return metrics

    return call


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Wall and processor seconds until the result is there."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    jax.block_until_ready(call())
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


def host_gb() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def device_gb() -> str:
    """Peak memory of the accelerator, or "-" where the backend does not say."""
    statistics = jax.devices()[0].memory_stats()
    return f"{statistics['peak_bytes_in_use'] / 2**30:.1f}" if statistics else "-"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", choices=("grpo", "sft"), default="grpo")
    parser.add_argument("--dtype", default="float32", help="of products and frozen weights")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--prompt_tokens", type=int, default=1100)
    parser.add_argument("--completion_tokens", type=int, default=350, help="mean; from two thirds to four thirds of it")
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompt_bucket", type=int, default=128)
    parser.add_argument("--completion_bucket", type=int, default=128, help="of a packed row")
    parser.add_argument("--micro_batches", type=int, default=1)
    parser.add_argument("--rows", type=int, default=32, help="sft: packed rows of a batch")
    parser.add_argument("--row_tokens", type=int, default=2048)
    parser.add_argument("--chunk", type=int, default=8192, help="sft: tokens whose logits are held at a time")
    parser.add_argument(
        "--remat", choices=("none", "layer", "dots"), default="none", help="recomputed in the backward pass"
    )
    parser.add_argument("--fused", action="store_true", help="sft: cuDNN's attention, on a GPU")
    parser.add_argument("--calls", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
