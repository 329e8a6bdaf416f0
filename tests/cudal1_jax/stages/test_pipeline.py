import json
import runpy
from pathlib import Path

import pytest

from cudal1_jax.report import run_directory, summary
from cudal1_jax.report.summary import Summary
from cudal1_jax.stages import pipeline

CONFIGS = Path(__file__).parents[3] / "configs"


class NoPool:
    """Stands for a pool of judging processes where no stage judges."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def begun(monkeypatch):
    """Replaces each stage by one that ends at once: (stage, adapter it begins with) of each that was called."""
    calls = []

    def stage(config, directory, **_):
        calls.append((config.stage, config.policy.adapter))
        result = Summary(config.name, "cpu", "cpu", 1, 1.0, 0, 0, None, 0, None, ())
        summary.save(directory, result, [])

    for module in (pipeline.sft, pipeline.self_supervised, pipeline.contrastive):
        monkeypatch.setattr(module, "run", stage)
    monkeypatch.setattr(pipeline.pools, "pool", NoPool)
    return calls


def page(words=""):
    return runpy.run_path(str(CONFIGS / "pipeline.py"))["get_config"](words)


def run(path, config):
    directory = run_directory.open_run(path, config.to_dict())
    pipeline.run(config, directory, now=lambda: 0.0, started_s=0.0)
    return directory


def test_each_stage_begins_with_the_adapter_of_the_one_before(begun, tmp_path):
    directory = run(tmp_path / "p", page())
    assert begun == [
        ("sft", ""),
        ("self_supervised", str(tmp_path / "p" / "sft" / "adapter")),
        ("contrastive", str(tmp_path / "p" / "self_supervised" / "adapter")),
    ]
    assert json.loads(directory.summary.read_text())["config"] == "crl"


def test_a_stage_that_trained_all_parameters_hands_these_on(begun, tmp_path, monkeypatch):
    genuine, seen = pipeline.self_supervised.run, []

    def full(config, directory, **parts):
        directory.model.mkdir()
        genuine(config, directory, **parts)

    monkeypatch.setattr(pipeline.self_supervised, "run", full)
    monkeypatch.setattr(pipeline.contrastive, "run", lambda config, directory, **parts: seen.append(config.policy))
    with pytest.raises(FileNotFoundError):  # nobody wrote the last summary
        run(tmp_path / "p", page())
    assert [(policy.parameters, policy.adapter) for policy in seen] == [
        (str(tmp_path / "p" / "self_supervised" / "model"), "")
    ]


def test_a_pipeline_goes_on_after_the_stages_that_have_ended(begun, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.contrastive, "run", fail)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "p", page())
    assert [name for name, _ in begun] == ["sft", "self_supervised"]
    run(tmp_path / "p", page())
    assert [name for name, _ in begun] == ["sft", "self_supervised", "contrastive"]


def test_a_stage_that_samples_says_first_what_it_will_do_and_where(begun, tmp_path, capsys):
    config = runpy.run_path(str(CONFIGS / "crl.py"))["get_config"]("smoke")
    run(tmp_path / "r", config)
    line = capsys.readouterr().err
    assert line.startswith("crl-smoke: up to 1 iterations of 1 x 2 samples, judged on cpu at size cpu")
    assert str(tmp_path / "r") in line


@pytest.mark.parametrize("name", ["crl", "self_supervised", "sft", "pipeline"])
def test_every_page_has_a_smoke_form_of_another_name(name):
    get_config = runpy.run_path(str(CONFIGS / f"{name}.py"))["get_config"]
    whole, smoke = get_config(), get_config("smoke")
    assert smoke.stage == whole.stage
    assert smoke.name == f"{whole.name}-smoke"
    with pytest.raises(ValueError, match="has no variant 'nonsense'"):
        get_config("nonsense")


def test_the_main_job_is_what_its_users_rely_on():
    config = runpy.run_path(str(CONFIGS / "crl.py"))["get_config"]()
    assert (config.rollout.prompts, config.rollout.group, config.iterations) == (1, 8, 5)
    assert (config.rollout.prompt_tokens, config.rollout.completion_tokens) == (1536, 512)
    assert (config.task_level, config.task_plain_tokens, config.stop_after_s) == (1, 450, 540.0)
    assert (config.exemplars.policy, config.exemplars.count) == ("bucket", 2)
    smoke = runpy.run_path(str(CONFIGS / "crl.py"))["get_config"]("smoke")
    assert (smoke.iterations, smoke.rollout.group) == (1, 2)


@pytest.mark.parametrize(
    ("mode", "policy", "train"), [("vanilla", "none", False), ("evolve", "bucket", False), ("grpo", "none", True)]
)
def test_each_ablation_is_one_word(mode, policy, train):
    config = runpy.run_path(str(CONFIGS / "crl.py"))["get_config"](f"{mode},smoke")
    assert (config.name, config.exemplars.policy, config.learn.train) == (f"crl-{mode}-smoke", policy, train)
