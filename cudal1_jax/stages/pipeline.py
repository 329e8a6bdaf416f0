"""Runs the stage that a config names, or all three in order, each with the adapter that the one before it made."""

from collections.abc import Callable

from ml_collections import ConfigDict

from cudal1_jax.report import progress, run_directory
from cudal1_jax.report.run_directory import RunDirectory
from cudal1_jax.stages import contrastive, pools, self_supervised, setup, sft
from cudal1_jax.stages.checks import STAGES
from evaluator.whole_file import write_whole


def run(config: ConfigDict, directory: RunDirectory, *, now: Callable[[], float], started_s: float) -> None:
    """Begin or continue the run in `directory` by a config that was checked; the summary is written at the end."""
    if config.stage == "pipeline":
        _run_all(config, directory, now)
    elif config.stage == "sft":
        sft.run(config, directory, load_policy=setup.load_policy)
    elif config.stage == "self_supervised":
        _run_judged(self_supervised.run, config, directory, now, started_s)
    else:
        _run_judged(contrastive.run, config, directory, now, started_s)


def _run_judged(stage: Callable, config: ConfigDict, directory: RunDirectory, now: Callable, started_s: float) -> None:
    progress.say(
        f"{config.name}: up to {config.iterations} iterations of {config.rollout.prompts} x {config.rollout.group}"
        f" samples, judged on {config.device} at size {config.size}, kept in {directory.path}; bars of the first"
        " iteration stand still while XLA compiles, a minute or two"
    )
    with pools.pool(config) as pool:
        stage(config, directory, pool=pool, load_policy=setup.load_policy, now=now, started_s=started_s)


def _run_all(config: ConfigDict, directory: RunDirectory, now: Callable[[], float]) -> None:
    """Each stage has a folder of its own within the run; the run's summary is that of the last one."""
    previous: RunDirectory | None = None
    for name in STAGES:
        stage_config = ConfigDict(config[name])
        if previous is not None:
            stage_config.policy.adapter = str(previous.adapter)
            if previous.model.exists():  # all parameters were trained, the adapter merged in
                stage_config.policy.parameters, stage_config.policy.adapter = str(previous.model), ""
        part = run_directory.open_run(directory.path / name, stage_config.to_dict())
        if not part.is_finished():
            run(stage_config, part, now=now, started_s=now())
        previous = part
    write_whole(directory.summary, [part.summary.read_text(encoding="utf-8")])
