"""The real policy and the real judge, with times derived from the programs: the one test in which everything meets."""

import json
import runpy
from pathlib import Path

import pytest

from cudal1_jax.contrastive.store import Store
from cudal1_jax.policy import shipped
from cudal1_jax.report.run_directory import open_run
from cudal1_jax.stages import contrastive, setup
from evaluator.judge import clock
from evaluator.workers.local import LocalPool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def page():
    config = runpy.run_path(str(Path(__file__).parents[3] / "configs" / "crl.py"))["get_config"]("smoke")
    config.policy.adapter = "shipped" if shipped.available() else ""
    config.tasks = "1_019"
    config.iterations = 2
    config.rollout.completion_tokens = 320
    config.learn.completion_bucket = 320
    return config


def run(folder):
    config = page()
    with LocalPool(2, setup.judge_options(config) | {"clock": clock.derived}) as pool:
        arguments = {"pool": pool, "load_policy": setup.load_policy, "now": lambda: 0.0, "started_s": 0.0}
        return contrastive.run(config, open_run(folder, config.to_dict()), **arguments)


def test_a_killed_run_of_real_parts_ends_like_an_uninterrupted_one(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole")
    real, calls = Store.record_verdict, []

    def killing(self, *arguments):
        real(self, *arguments)
        calls.append(arguments)
        if len(calls) in (2, 4, 6):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "record_verdict", killing)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                run(tmp_path / "killed")
    killed = run(tmp_path / "killed")
    assert (killed.samples, killed.ok, killed.geomean_speedup) == (whole.samples, whole.ok, whole.geomean_speedup)
    rows = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "killed")]
    assert rows[0] == rows[1]
    assert [json.loads(line)["step"] for line in rows[0].splitlines()] == [0, 1]
    with Store(tmp_path / "killed" / "store.sqlite") as store:
        seeds = store.judged(end_step=0)
        assert all(entry.verdict.ok for entry in seeds)
        assert [len(entry.verdict.speedups) for entry in seeds] == [1] * len(seeds)
