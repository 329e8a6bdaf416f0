"""Run by test_sharding.py in processes of its own, where JAX simulates devices; prints one JSON object.

For each mesh: how far an update and the completions of a toy decoder lie from those on one device.

    on_many_devices.py MESHES MODES [COORDINATOR COUNT NUMBER]    # the last three: of several processes
"""

import contextlib
import dataclasses
import json
import sys

import jax
import numpy as np
from jax.experimental import multihost_utils

from cudal1_jax.learn import batch, losses, objectives, optimizer, step
from cudal1_jax.policy import lora, parameters, sharding
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.rollout import sampler
from cudal1_jax.rollout.options import SamplingOptions
from cudal1_jax.stages import processes

CONFIG = DecoderConfig(
    layers=2, width=16, mlp_width=24, heads=4, key_heads=2, head_size=4, vocabulary=48, rope_theta=1e4,
    norm_epsilon=1e-5, context=128, tied_embeddings=True,
)  # fmt: skip
PROMPTS, GROUP, TOKENS = 8, 2, 8


def main(meshes: list[dict[str, int]], modes: list[str]) -> dict[str, dict[str, float]]:
    """What `_differences` gives, for each mode of training and mesh."""
    params = parameters.init(jax.random.key(0), CONFIG)
    params["embed"] = 10.0 * params["embed"]  # logits far from uniform
    adapter = lora.init(jax.random.key(1), CONFIG, rank=2)
    adapter = jax.tree.map(lambda x: x + 0.1 * jax.random.normal(jax.random.key(x.size), x.shape), adapter)
    prompts, rows = _batch()
    report = {}
    for mode in modes:
        alone = _outcome(mode == "full", params, adapter, prompts, rows, None)
        for sizes in meshes:
            there = _outcome(mode == "full", params, adapter, prompts, rows, sharding.mesh(sizes))
            report[f"{mode} {json.dumps(sizes)}"] = _differences(alone, there)
    return report


def _batch() -> tuple[batch.Prompts, batch.Completions]:
    draw = np.random.default_rng(0)
    prompts = batch.prompts([draw.integers(0, 48, 3 + n % 3).tolist() for n in range(PROMPTS)], bucket=4)
    lengths = [1 + n % 6 for n in range(PROMPTS * GROUP)]
    rows = batch.completions(
        [draw.integers(0, 48, size).tolist() for size in lengths],
        advantages=draw.normal(size=len(lengths)).tolist(),
        sampler_logprobs=[(-draw.random(size)).tolist() for size in lengths],
        bucket=8,
    )
    rows = dataclasses.replace(rows, old_logprobs=rows.sampler_logprobs)
    return step.split(prompts, rows, slices=1, micro_batches=2)


def _outcome(full: bool, params: dict, adapter: lora.Adapter, prompts, rows, mesh) -> dict[str, dict]:
    """What an update makes of the trained values, its metrics, and what is sampled afterwards."""
    divided = None
    if mesh is not None:
        params = sharding.place(CONFIG, params, mesh)
        divided = sharding.of_parameters(CONFIG, mesh) if full else sharding.of_adapter(CONFIG, adapter, mesh)
        adapter = sharding.place_adapter(CONFIG, adapter, mesh)
        prompts, rows = sharding.place_rows(prompts, mesh, axis=1), sharding.place_rows(rows, mesh, axis=2)
    goal = objectives.grpo(
        CONFIG, clip_low=0.2, clip_high=0.28, kl=losses.kl_k3, kl_weight=0.1, aggregate=losses.token_mean,
        temperature=1.0, chunk=8, full=full,
    )  # fmt: skip
    adam = optimizer.build(1e-2, clip_norm=1.0)
    state = step.init(params if full else adapter, adam)
    with jax.set_mesh(mesh) if mesh is not None else contextlib.nullcontext():
        state, metrics = step.make_update(goal, adam, divided)(state, params, prompts, rows)
    trained = state.trainable if full else jax.jit(lora.merge)(params, state.trainable)
    options = SamplingOptions(temperature=1.0, max_new_tokens=TOKENS, stop_ids=(0,), prompt_bucket=4)
    drawn = sampler.sample(CONFIG, trained, [[5, 6, 7], [8, 9]], 4, jax.random.key(2), options)
    return {
        "metrics": _whole(metrics),
        "trained": _whole(state.trainable),
        "moments": _whole(state.optimizer_state),
        "divided": {"trained": _divided(state.trainable), "moments": _divided(state.optimizer_state)},
        "tokens": drawn.tokens,
        "logprobs": drawn.logprobs,
    }


def _whole(tree: object) -> object:
    """Arrays on the host, whichever process holds which part."""
    if all(leaf.is_fully_addressable for leaf in jax.tree.leaves(tree)):
        return jax.tree.map(np.asarray, tree)
    return multihost_utils.process_allgather(tree, tiled=True)


def _divided(tree: object) -> float:
    """Share of the bytes of a tree that one device holds."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array) and leaf.ndim]
    return sum(map(sharding.shard_bytes, leaves)) / sum(leaf.nbytes for leaf in leaves)


def _differences(alone: dict, there: dict) -> dict[str, float]:
    def largest(name: str) -> float:
        gaps = jax.tree.map(lambda a, b: np.max(np.abs(a - b), initial=0.0), alone[name], there[name])
        return float(max(jax.tree.leaves(gaps)))

    return {
        "metrics": largest("metrics"),
        "trained": largest("trained"),
        "moments": largest("moments"),
        "logprobs": largest("logprobs"),
        "other_tokens": int(np.sum(alone["tokens"] != there["tokens"])),
        **{f"{name}_share": share for name, share in there["divided"].items()},
    }


if __name__ == "__main__":
    if sys.argv[3:]:
        processes.start(sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    assert len(jax.devices()) > 1, "run with XLA_FLAGS=--xla_force_host_platform_device_count=8"
    jax.config.update("jax_disable_most_optimizations", True)  # compiled in half the time, for arrays this small
    print(json.dumps(main(json.loads(sys.argv[1]), sys.argv[2].split(","))))
