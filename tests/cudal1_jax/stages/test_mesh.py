"""The main job's toy with its policy divided over devices: it samples, learns and keeps what it does on one."""

import json

import numpy as np
import pytest

from cudal1_jax.contrastive.store import Store
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import checks, policy, setup

pytestmark = pytest.mark.usefixtures("compile_quickly")


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def tokens(folder, step):
    with Store(folder / "store.sqlite") as store:
        return [sample.tokens.tolist() for sample in store.rollout(step)[1]]


def test_a_run_on_four_devices_samples_and_learns_as_on_one(toy, tmp_path, monkeypatch):
    config = toy.config(iterations=1)
    config.rollout.prompts = 2
    toy.run(tmp_path / "one", config, toy.ScriptedPool())
    config.mesh.fsdp, config.mesh.tensor = 2, 2
    alone = toy.policy
    monkeypatch.setattr(toy, "policy", lambda config: policy.divided(alone(config), setup.mesh(config)))
    toy.run(tmp_path / "four", config, toy.ScriptedPool())
    assert tokens(tmp_path / "four", 0) == tokens(tmp_path / "one", 0)
    (one,), (four,) = metrics(tmp_path / "one"), metrics(tmp_path / "four")
    for name in ("learn/loss", "learn/grad_norm", "learn/update_norm", "learn/entropy"):
        np.testing.assert_allclose(four[name], one[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"data": 3}, "1 prompts do not divide by the 3 parts of the mesh"),
        ({"tensor": 0}, "config.mesh.tensor: seen 0, expected at least 1, or -1"),
    ],
)
def test_a_mesh_that_does_not_suit_the_run_is_refused(toy, sizes, complaint):
    config = toy.config()
    config.mesh.update(sizes)
    with pytest.raises(RunError, match=complaint):
        checks.check(config)


def test_too_few_devices_are_told_before_the_policy_is_loaded(toy):
    config = toy.config()
    config.mesh.tensor = 16
    with pytest.raises(
        RunError, match=r"config\.mesh: a mesh of .*tensor=16.* needs other devices than the 8 there are"
    ):
        setup.load_policy(config)
