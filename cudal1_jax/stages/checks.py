"""What is wrong with a config, found in a second: before a run's folder is made, a model loaded or a program judged."""

import typing
from pathlib import Path

from ml_collections import ConfigDict

from cudal1_jax.corpus import folder
from cudal1_jax.policy import gguf, lora, shipped
from cudal1_jax.policy.decoder import Remat
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import objective, pools, setup
from cudal1_jax.stages.policy import PARAMETERS, SHIPPED, missing_files
from evaluator.judge import doctor
from evaluator.judge.ladder import DEVICES
from evaluator.records import Mode
from evaluator.workers import key_file
from evaluator.workers.pool import PoolError
from evaluator.workers.remote import host_and_port

STAGES = ("sft", "self_supervised", "contrastive")
REINFORCE, REJECTION = "reinforce", "rejection"


def check(config: ConfigDict) -> None:
    """RunError, with the key and what it may be, for a value that no stage can use."""
    if config.stage == "pipeline":
        for name in STAGES:
            check(config[name])
        return
    _one_of("config.stage", config.stage, (*STAGES, "pipeline"))
    _check_policy(config)
    if config.stage == "sft":
        _check_corpus(config)
    if config.stage != "sft":
        _at_least_1("config.iterations", config.iterations)
        _check_judging(config)
        _check_sampling(config)
        _check_mesh(config)
        _check_learning(config)


def _check_policy(config: ConfigDict) -> None:
    path = Path(config.policy.model) if config.policy.model else None
    if path is not None and not path.exists():
        raise RunError(f"config.policy.model: no GGUF file and no model folder at {path}")
    if path is None:
        with missing_files("config.policy.model"):
            gguf.embedded_path()
    if config.policy.parameters and not (Path(config.policy.parameters) / PARAMETERS).is_file():
        raise RunError(f"config.policy.parameters: no {PARAMETERS} in {config.policy.parameters}")
    adapter = Path(config.policy.adapter)
    if config.policy.adapter == SHIPPED and not shipped.available():
        raise RunError(
            f"config.policy.adapter: this copy has no adapter in {shipped.FOLDER}: make one with"
            " `python -m cudal1_jax.main --config=configs/sft.py`, or begin without: --config.policy.adapter="
        )
    if config.policy.adapter not in ("", SHIPPED) and not (adapter / "adapter_config.json").is_file():
        raise RunError(f"config.policy.adapter: no adapter_config.json in {adapter}: give a PEFT folder, or shipped")
    for target in config.policy.targets:
        _one_of("config.policy.targets", target, tuple(lora.TARGETS))


def _check_corpus(config: ConfigDict) -> None:
    manifest = Path(config.data.corpus) / folder.MANIFEST
    if not manifest.is_file():
        raise RunError(
            f"config.data.corpus: no {folder.MANIFEST} in {config.data.corpus}: make a corpus there with"
            f" `python -m cudal1_jax.corpus --out={config.data.corpus} --measure`"
        )


def _check_judging(config: ConfigDict) -> None:
    _one_of("config.device", config.device, DEVICES)
    _one_of("config.judge.mode", config.judge.mode, tuple(Mode))
    _at_least_1("config.judge.workers", config.judge.workers)
    _check_pool(config)
    if not 0 < config.judge.gpu_share < 1:
        raise RunError(f"config.judge.gpu_share: seen {config.judge.gpu_share}, expected a share between 0 and 1")
    tasks = list(setup.tasks(config).values())
    for task in tasks:
        try:
            task.arrays_at(config.size)
        except KeyError as error:
            raise RunError(f"config.size: {error.args[0]}") from error
    # What judges elsewhere knows best what it lacks.
    missing = doctor.missing_for(config.device, tasks, config.size) if config.pool.kind == pools.LOCAL else None
    if missing is not None:
        raise RunError(f"config.device: {missing}")


def _check_pool(config: ConfigDict) -> None:
    _one_of("config.pool.kind", config.pool.kind, pools.KINDS)
    _at_least_1("config.pool.cpus", config.pool.cpus)
    if config.pool.kind == pools.REMOTE:
        try:
            host_and_port(config.pool.address)
            key_file.load(config.pool.key_file)
        except ValueError as error:
            raise RunError(f"config.pool.address: {error}") from error
        except PoolError as error:
            raise RunError(f"config.pool.key_file: {error}") from error


def _check_sampling(config: ConfigDict) -> None:
    for key in ("prompts", "group", "prompt_tokens"):
        _at_least_1(f"config.rollout.{key}", config.rollout[key])
    setup.sampling_options(config, stop_ids=())
    if "exemplars" in config:
        setup.select(config)


def _check_mesh(config: ConfigDict) -> None:
    for axis, size in config.mesh.items():
        if size != -1 and size < 1:
            raise RunError(f"config.mesh.{axis}: seen {size}, expected at least 1, or -1 for what is left")
    parts = config.mesh.data * config.mesh.fsdp
    if parts > 0 and config.rollout.prompts % parts:
        raise RunError(
            f"config.rollout.prompts: {config.rollout.prompts} prompts do not divide by the {parts} parts of the mesh"
            " (data x fsdp): make it a multiple"
        )


def _check_learning(config: ConfigDict) -> None:
    for key in ("micro_batches", "prompt_bucket", "completion_bucket"):
        _at_least_1(f"config.learn.{key}", config.learn[key])
    if config.rollout.group % config.learn.micro_batches:
        raise RunError(
            f"config.learn.micro_batches: {config.rollout.group} samples of a prompt do not divide by"
            f" {config.learn.micro_batches}"
        )
    _one_of("config.learn.remat", config.learn.remat, typing.get_args(Remat))
    _one_of("config.learn.moment_dtype", config.learn.moment_dtype, ("float32", "bfloat16"))
    objective.aggregate(config)
    if config.stage == "self_supervised":
        _one_of("config.learn.method", config.learn.method, (REINFORCE, REJECTION))
    else:
        _check_loss(config)


def _check_loss(config: ConfigDict) -> None:
    objective.kl(config)
    objective.advantage_of(config)
    _at_least_1("config.learn.epochs", config.learn.epochs)
    if config.learn.loss == objective.REINFORCE and config.learn.epochs > 1:
        raise RunError("config.learn.epochs: reinforce has no ratio for a second update on the same samples: make it 1")
    if config.rollout.group < 2 and objective.advantage_of(config) is not objective.as_they_are:
        raise RunError(
            "config.rollout.group: the advantage compares a sample with the others of its group: make it at least 2, or"
            " config.learn.advantage reward"
        )


def _one_of(key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RunError(f"{key}: {value!r} is none of {', '.join(choices)}")


def _at_least_1(key: str, value: int) -> None:
    if value < 1:
        raise RunError(f"{key}: seen {value}, expected at least 1")
