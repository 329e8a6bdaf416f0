"""What a config's names become."""

import toy

from cudal1_jax.stages import setup


def test_a_gpu_is_divided_between_judge_and_learner():
    config = toy.config(device="cuda")
    limits = setup.judge_options(config)["limits"]
    assert limits.gpu_share == config.judge.gpu_share == 0.8
    assert limits.memory_bytes == 48 << 30
    assert setup.judging_workers(config) == 1


def test_the_emulators_limits_are_its_own():
    config = toy.config()
    config.judge.limits.memory_bytes = 5 << 20
    assert setup.judge_options(config)["limits"].memory_bytes == 5 << 20
    assert setup.judging_workers(config) == config.judge.workers == 2
