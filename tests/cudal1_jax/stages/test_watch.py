"""What a run tells of itself, and where it stops because going on has no use."""

import itertools
import json
import math

import pytest

from cudal1_jax.policy import lora
from cudal1_jax.report.run_directory import RunError, open_run
from cudal1_jax.stages import learning

pytestmark = pytest.mark.usefixtures("compile_quickly")


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def steps(folder):
    return sorted(int(path.name) for path in (folder / "checkpoints").iterdir() if path.name.isdigit())


def test_a_row_has_what_one_watches(toy, tmp_path, monkeypatch):
    seconds = itertools.count()
    monkeypatch.setattr(toy, "now", lambda: 0.25 * next(seconds))
    toy.run(tmp_path / "run", toy.config(iterations=2), toy.ScriptedPool())
    for row in rows(tmp_path / "run"):
        assert row["reward/quartile_1"] <= row["reward/median"] <= row["reward/quartile_3"] <= row["reward/max"]
        assert 0.0 <= row["success_rate"] <= 1.0
        assert 0.0 < row["learn/entropy"] < math.log(64)
        assert {"learn/loss", "learn/kl", "learn/clip_fraction", "learn/sampler_gap", "learn/grad_norm"} <= row.keys()
        arrows = [row[f"time/{name}_s"] for name in ("exemplars", "prompt", "rollout", "judge", "reward", "update")]
        assert arrows == [0.25] * 6  # the clock goes on by that at each look
        assert row["time/iteration_s"] == 6 * 0.25
        assert row["rollout/tokens_per_s"] == pytest.approx(4 * row["completion/tokens"] / 0.25)
        assert row["learn/tokens_per_s"] == pytest.approx((100 + 4 * row["completion/tokens"]) / 0.25)
        assert 0.0 < row["learn/mfu"] < 1.0


def test_a_loss_that_is_no_number_stops_the_run_which_then_goes_on(toy, tmp_path, monkeypatch):
    genuine, calls = learning.group_advantages, []

    def broken(rewards, advantage):
        calls.append(rewards)
        found = genuine(rewards, advantage)
        return [math.nan, *found[1:]] if len(calls) == 2 else found

    folder, page = tmp_path / "run", toy.config(iterations=3)
    monkeypatch.setattr(learning, "group_advantages", broken)
    with pytest.raises(RunError, match=r"iteration 2: the loss is nan .* this update was left out.*--config.policy.ad"):
        toy.run(folder, page, toy.ScriptedPool())
    assert steps(folder) == [1, 2]
    assert not (folder / "summary.json").exists()
    assert [row["learn/loss"] is None for row in rows(folder)] == [False, True]
    saved = lora.load(folder / "adapter", toy.policy(page).config)
    assert all(math.isfinite(float(pair["b"].sum())) for pair in saved.weights.values())
    assert toy.run(folder, page, toy.ScriptedPool()).iterations == 3
    assert [row["learn/loss"] is None for row in rows(folder)] == [False, True, False]


def test_a_policy_that_is_certain_of_everything_stops_the_run(toy, tmp_path):
    folder, page = tmp_path / "run", toy.config(iterations=3)
    page.learn.entropy_floor = 5.0  # more than ln 64: any policy here is below
    with pytest.raises(RunError, match=r"iteration 1: the policy's entropy is 4(\.\d)? nats .*entropy_floor \(5\): it"):
        toy.run(folder, page, toy.ScriptedPool())
    assert steps(folder) == [1]
    assert (folder / "adapter" / "adapter_model.safetensors").exists()


def test_a_trace_of_the_second_iteration_is_written_on_request(toy, tmp_path):
    page = toy.config(iterations=2)
    page.profile = str(tmp_path / "trace")
    toy.run(tmp_path / "run", page, toy.ScriptedPool())
    assert len(list((tmp_path / "trace").rglob("*.xplane.pb"))) == 1
    page.profile = ""  # which may change between two calls
    open_run(tmp_path / "run", page.to_dict())
