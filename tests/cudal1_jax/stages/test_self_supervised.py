import json

import pytest

from cudal1_jax.contrastive.records import Judged
from cudal1_jax.learn.checkpoint import Checkpointer
from cudal1_jax.stages.self_supervised import keep
from evaluator.records import Outcome

pytestmark = pytest.mark.usefixtures("compile_quickly")


def page(toy, method, **changes):
    config = toy.config("self_supervised", iterations=3, **changes)
    config.learn.method = method
    return config


@pytest.mark.parametrize("method", ["reinforce", "rejection"])
def test_a_round_learns_from_every_iteration_and_ships_an_adapter(toy, tmp_path, method):
    result = toy.run(tmp_path / "run", page(toy, method), toy.ScriptedPool())
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(row["exemplars"] == 0.0 for row in rows)
    assert "learn/loss" in rows[0]
    # Nothing is learnt from an iteration that kept nothing, such as one of programs that rejection has seen before.
    assert all(("learn/loss" in row) == (row["advantage/std"] > 0) for row in rows)
    assert result.samples == 12
    assert (tmp_path / "run" / "adapter" / "adapter_model.safetensors").exists()


def test_rejection_samples_everything_from_the_policy_it_began_with(toy, tmp_path):
    gaps = {}  # between the sampler's log-probs and those of the policy that learns
    for method in ("reinforce", "rejection"):
        toy.run(tmp_path / method, page(toy, method), toy.ScriptedPool())
        rows = [json.loads(line) for line in (tmp_path / method / "metrics.jsonl").read_text().splitlines()]
        gaps[method] = [row["learn/sampler_gap"] for row in rows if "learn/sampler_gap" in row]
        assert len(gaps[method]) > 1
    assert max(gaps["reinforce"]) < 1e-5
    assert gaps["rejection"][0] < 1e-5
    assert min(gaps["rejection"][1:]) > 1e-4


@pytest.mark.parametrize("method", ["reinforce", "rejection"])
def test_a_round_killed_while_learning_goes_on_to_the_same_end(toy, tmp_path, monkeypatch, method):
    toy.run(tmp_path / "whole", page(toy, method), toy.ScriptedPool())
    real = Checkpointer.save

    def killing(self, step, *rest):
        if step == 2:
            raise KeyboardInterrupt
        real(self, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpointer, "save", killing)
        with pytest.raises(KeyboardInterrupt):
            toy.run(tmp_path / "killed", page(toy, method), toy.ScriptedPool())
    toy.run(tmp_path / "killed", page(toy, method), toy.ScriptedPool())
    assert toy.fingerprint(tmp_path / "killed") == toy.fingerprint(tmp_path / "whole")


def test_only_successes_are_kept_and_rejection_keeps_each_program_once(verdict):
    verdicts = [verdict("a"), verdict("b", outcome=Outcome.WRONG_VALUE), verdict("a"), verdict("c")]
    assert keep("reinforce", verdicts) == [1.0, 0.0, 1.0, 1.0]
    assert keep("rejection", verdicts) == [1.0, 0.0, 0.0, 1.0]
    earlier = [Judged(step=0, sample=0, task="1_019", program="a", name="", verdict=verdict("a"))]
    assert keep("rejection", verdicts, earlier) == [0.0, 0.0, 0.0, 1.0]
    assert keep("reinforce", verdicts, earlier) == [1.0, 0.0, 1.0, 1.0]
