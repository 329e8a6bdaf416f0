"""Builds the parts of a stage from its config: below `main.py`, only here do a config's names become functions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from cudal1_jax.contrastive import exemplars
from cudal1_jax.contrastive.exemplars import Select
from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.contrastive.store import Store
from cudal1_jax.learn import objectives, optimizer, values
from cudal1_jax.learn.objectives import Scorer
from cudal1_jax.learn.step import TrainState
from cudal1_jax.policy import lora, sharding
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.report import progress
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.rollout import sampler
from cudal1_jax.stages import learning, objective, policy, sampling, workload
from cudal1_jax.stages.judging import Bench, Pool
from cudal1_jax.stages.learning import Learn
from cudal1_jax.stages.policy import Policy
from evaluator.devices.cuda import machine
from evaluator.judge import baseline
from evaluator.records import Limits
from evaluator.tasks.task import Task

RollOut = Callable[[Any, int, Sequence[Prompt]], list[Sample]]
"""(trained values, iteration, prompts) -> the samples of all prompts, in prompt order"""


def kernels() -> Path:
    """The folder of verified programs. RunError where this installation has none."""
    folder = baseline.kernels_folder()
    if folder is None:
        raise RunError("no plain programs to measure against: install from a full checkout, which has kernels/")
    return folder


def judge_options(config: ConfigDict) -> dict:
    """Arguments of `evaluator.judge.ladder.Judge`, as each worker of a pool takes them."""
    limits = dict(config.judge.limits)
    limits["memory_bytes"] = limits["memory_bytes"] or Limits.for_device(config.device).memory_bytes
    limits["gpu_share"] = config.judge.gpu_share
    return {
        "device": config.device,
        "mode": config.judge.mode,
        "seed": config.seed,
        "limits": Limits(**limits),
    }


def judging_workers(config: ConfigDict) -> int:
    """Processes that judge here: as many as the config asks for, on GPUs at most one for each."""
    if config.device != "cuda":
        return config.judge.workers
    driver = machine.driver()
    return max(1, min(config.judge.workers, len(driver.gpus) if driver is not None else 1))


def tasks(config: ConfigDict) -> dict[str, Task]:
    """What a run works on. RunError: a task that does not exist or has nothing to be compared with."""
    names = [name.strip() for name in config.tasks.split(",") if name.strip()]
    if names:
        return workload.named_tasks(names, kernels())
    encode = policy.load_tokenizer(config.policy.model).encode
    return workload.short_tasks(
        config.task_level,
        config.task_families,
        config.task_plain_tokens,
        kernels(),
        lambda text: len(encode(text)),
    )


def bench(config: ConfigDict, store: Store, pool: Pool) -> Bench:
    """Where the programs of a run are judged, and what it works on: only the tasks that its iterations come to."""
    available = tasks(config)
    schedule = workload.schedule(
        sorted(available), iterations=config.iterations, prompts=config.rollout.prompts, seed=config.seed
    )
    return Bench(
        store=store,
        pool=pool,
        tasks={name: available[name] for name in sorted({task for row in schedule for task in row})},
        schedule=schedule,
        device=config.device,
        size=config.size,
        seed=config.seed,
    )


def select(config: ConfigDict) -> Select:
    """The exemplar policy of a config. RunError: there is none of that name."""
    try:
        return exemplars.build(
            config.exemplars.policy,
            bucket_width=config.exemplars.bucket_width,
            temperature=config.exemplars.temperature,
            islands=config.exemplars.islands,
        )
    except ValueError as error:
        raise RunError(f"config.exemplars: {error}") from error


def load_policy(config: ConfigDict) -> Policy:
    """The policy of a config; of stage 1, which samples nothing, in one dtype. RunError: a file missing or unfit."""
    devices = mesh(config)  # refused before anything is loaded
    return policy.load(
        model=config.policy.model,
        parameters_folder=config.policy.parameters,
        adapter=config.policy.adapter,
        rank=config.policy.rank,
        targets=tuple(config.policy.targets),
        seed=config.seed,
        rollout_dtype=config.policy.get("rollout_dtype", config.policy.update_dtype),
        update_dtype=frozen_dtype(config),
        mesh=devices,
    )


def frozen_dtype(config: ConfigDict) -> str:
    """Of the base: the update's, or float32 where all parameters are trained and the update casts them."""
    return "float32" if "learn" in config and config.learn.full else config.policy.update_dtype


def mesh(config: ConfigDict) -> Mesh | None:
    """The devices that a config's policy is divided over, None for one. RunError: there are no such devices."""
    sizes = dict(config.get("mesh", {}))
    if all(size == 1 for size in sizes.values()):
        return None
    try:
        return sharding.mesh(sizes)
    except ValueError as error:
        raise RunError(f"config.mesh: {error}") from error


def sampling_options(config: ConfigDict, stop_ids: tuple[int, ...]) -> sampler.SamplingOptions:
    """How completions are drawn. RunError: an option out of its range."""
    try:
        return sampler.SamplingOptions(
            temperature=config.rollout.temperature,
            top_k=config.rollout.top_k or None,
            top_p=config.rollout.top_p,
            min_p=config.rollout.min_p,
            max_new_tokens=config.rollout.completion_tokens,
            stop_ids=stop_ids,
            prompt_bucket=config.rollout.prompt_bucket,
            slots=config.rollout.slots,
            int8=config.rollout.int8,
        )
    except ValueError as error:
        raise RunError(f"config.rollout: {error}") from error


def roll_out(config: ConfigDict, loaded: Policy) -> RollOut:
    """Sampling from what is trained, an adapter merged into its base first; random keys by (seed, iteration)."""
    options = sampling_options(config, loaded.tokenizer.stop_ids)
    group = config.rollout.group
    merge = jax.jit(lora.merge)

    def sample(trainable: Any, step: int, prompts: Sequence[Prompt]) -> list[Sample]:
        actor = values.actor_of(trainable)
        if isinstance(actor, Adapter):
            params = merge(loaded.rollout_params, actor)
        else:
            params = jax.tree.map(lambda x: x.astype(config.policy.rollout_dtype), actor)
        key = jax.random.fold_in(jax.random.key(config.seed), step)
        rows = len(prompts) * group
        with progress.bar("sampling", options.max_new_tokens * rows, "token") as bar:
            return sampling.roll_out(
                prompts,
                loaded.tokenizer,
                lambda ids: sampler.sample(
                    loaded.config,
                    params,
                    ids,
                    group,
                    key,
                    options,
                    progress=lambda at: bar.update(at.settled - bar.n),
                ),
            )

    return sample


def learner(config: ConfigDict, loaded: Policy) -> tuple[Learn, TrainState]:
    """The learner of stage 3, by `learn.loss`; without `learn.train` nothing changes."""
    begin = learning.beginning(loaded, full=config.learn.full)
    if not config.learn.train:
        return learning.keep, learning.frozen_state(begin)
    trainable = values.with_critic(begin, loaded.config.width) if config.learn.loss == objective.PPO else begin
    return learning.build(
        loaded,
        objective.build(config, loaded.config),
        optimizer_of(config),
        trainable,
        score=_scorer(config, loaded),
        reference=begin if config.learn.loss != objective.REINFORCE else None,
        epochs=config.learn.epochs,
        mask_overlong=config.learn.mask_overlong,
        **_parts(config),
    )


def reinforce(config: ConfigDict, loaded: Policy) -> tuple[Learn, TrainState]:
    """The learner of stage 2: REINFORCE on rewards as they are."""
    begin = learning.beginning(loaded, full=config.learn.full)
    return learning.build(
        loaded,
        objective.reinforce(config, loaded.config),
        optimizer_of(config),
        begin,
        score=_scorer(config, loaded),
        reference=None,
        epochs=1,
        mask_overlong=False,
        **_parts(config),
    )


def _scorer(config: ConfigDict, loaded: Policy) -> Scorer:
    return objectives.make_scorer(
        loaded.config,
        temperature=config.rollout.temperature,
        compute_dtype=jnp.dtype(config.policy.update_dtype),
        full=config.learn.full,
    )


def _parts(config: ConfigDict) -> dict[str, int]:
    """How a batch is cut and padded."""
    return {
        "micro_batches": config.learn.micro_batches,
        "prompt_bucket": config.learn.prompt_bucket,
        "completion_bucket": config.learn.completion_bucket,
        "completion_tokens": config.rollout.completion_tokens,
    }


def optimizer_of(config: ConfigDict) -> optax.GradientTransformation:
    """AdamW as a config asks for it."""
    return optimizer.build(
        config.learn.learning_rate,
        clip_norm=config.learn.clip_norm,
        weight_decay=config.learn.weight_decay,
        moment_dtype=jnp.dtype(config.learn.moment_dtype),
    )
