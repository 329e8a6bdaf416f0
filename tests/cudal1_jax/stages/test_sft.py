"""Stage 1 on a toy: it learns, it resumes exactly, and it says what is missing."""

import dataclasses
import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from cudal1_jax.corpus import folder
from cudal1_jax.learn import packing
from cudal1_jax.learn.packing import Tokens
from cudal1_jax.policy import lora, parameters
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.report import run_directory
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import sft, sft_examples
from cudal1_jax.stages.policy import Policy

SHAPE = DecoderConfig(
    layers=2, width=32, mlp_width=64, heads=2, key_heads=1, head_size=16, vocabulary=64, rope_theta=1e4,
    norm_epsilon=1e-5, context=512, tied_embeddings=True,
)  # fmt: skip


class Letters:
    """One id per letter, so that a test can read what is trained on."""

    eos_id = 2

    def encode(self, text):
        return [3 + ord(letter) % 61 for letter in text]

    def render_chat(self, user):
        return [1, *self.encode(user), 1]


def toy_policy(config):
    params = parameters.init(jax.random.key(1), SHAPE)
    params["embed"] = params["embed"] * 30.0  # the frozen table must be able to say something with certainty
    adapter = lora.init(jax.random.key(2), SHAPE, config.policy.rank)
    return Policy(config=SHAPE, params=params, rollout_params=params, tokenizer=Letters(), adapter=adapter)


class Line:
    """An example as the corpus reader gives it."""

    def __init__(self, number):
        word = "abcdefgh"[number % 8]
        self.key, self.prompt, self.completion = f"chain {number}", f"write {word}", word * (5 + number % 4)


@pytest.fixture(autouse=True, scope="module")
def compile_once_a_module(tmp_path_factory):
    """Every run compiles the same update; all but the first read it from a cache."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_disable_most_optimizations", True)  # toy programs compile for longer than they run
    yield
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def config(monkeypatch) -> ConfigDict:
    monkeypatch.setattr(folder, "read_examples", lambda path: map(Line, range(60)))
    page = importlib.util.spec_from_file_location("sft_page", Path(__file__).parents[3] / "configs" / "sft.py")
    module = importlib.util.module_from_spec(page)
    page.loader.exec_module(module)
    config = module.get_config("smoke")
    config.data.row_tokens, config.data.rows, config.data.passes, config.micro_batches = 64, 2, 8, 2
    config.schedule.peak, config.evaluate_every, config.most_steps = 2e-2, 5, 20
    return config.lock()


def open_run(path, config):
    return run_directory.open_run(path, config.to_dict())


def losses(directory):
    return [json.loads(line)["held_out_loss"] for line in directory.metrics.read_text().splitlines()]


def test_a_run_learns_and_leaves_adapter_figures_and_summary(tmp_path, config):
    directory = open_run(tmp_path / "run", config)
    sft.run(config, directory, load_policy=toy_policy)
    curve = losses(directory)
    assert len(curve) == 4
    assert curve[-1] < 0.5 * curve[0]
    trained = lora.load(directory.adapter, SHAPE)
    assert float(jnp.abs(trained.weights["q"]["b"]).max()) > 0  # b begins at zero
    figures = json.loads((directory.adapter / "training.json").read_text())
    assert figures["held_out_loss"] == pytest.approx(min(curve))
    assert figures["config"]["policy"]["rank"] == 4
    assert json.loads(directory.summary.read_text())["iterations"] == 20


def test_a_run_that_dies_between_checkpoints_ends_with_the_same_bits(tmp_path, config, monkeypatch):
    straight = open_run(tmp_path / "straight", config)
    sft.run(config, straight, load_policy=toy_policy)

    class Killed(BaseException):
        pass

    broken = open_run(tmp_path / "broken", config)
    calls = iter(range(1000))
    genuine = packing.to_rows

    def to_rows(*arguments, **keywords):
        if next(calls) == 13 + 3:  # in the third interval; the first calls are those of the held-out rows
            raise Killed
        return genuine(*arguments, **keywords)

    monkeypatch.setattr(packing, "to_rows", to_rows)
    with pytest.raises(Killed):
        sft.run(config, broken, load_policy=toy_policy)
    assert 0 < len(losses(broken)) < 4
    monkeypatch.setattr(packing, "to_rows", genuine)
    sft.run(config, broken, load_policy=toy_policy)
    assert losses(broken) == losses(straight)
    weights = "adapter_model.safetensors"
    assert (broken.adapter / weights).read_bytes() == (straight.adapter / weights).read_bytes()


def test_a_loss_that_is_no_number_stops_it_with_a_checkpoint_from_which_it_goes_on(tmp_path, config, monkeypatch):
    directory, genuine, calls = open_run(tmp_path / "run", config), packing.to_rows, iter(range(1000))

    def to_rows(*arguments, **keywords):
        rows = genuine(*arguments, **keywords)
        broken = keywords["micro_batches"] == 2 and next(calls) == 9  # the tenth batch; held-out rows are not split
        return dataclasses.replace(rows, mask=rows.mask * jnp.nan) if broken else rows

    monkeypatch.setattr(packing, "to_rows", to_rows)
    with pytest.raises(RunError, match=r"step 10: the loss is nan, so its update was left out.*config.schedule.peak"):
        sft.run(config, directory, load_policy=toy_policy)
    assert len(losses(directory)) == 1
    sft.run(config, directory, load_policy=toy_policy)
    assert np.isfinite(losses(directory)).all()
    assert json.loads(directory.summary.read_text())["iterations"] == 20


def test_it_stops_early_and_keeps_the_best(tmp_path, config):
    with config.unlocked():
        config.schedule.peak, config.patience, config.optimizer.clip_norm = 3.0, 2, 1e9  # far too fast: it gets worse
    directory = open_run(tmp_path / "run", config)
    sft.run(config, directory, load_policy=toy_policy)
    curve = losses(directory)
    best = int(np.nanargmin(curve))
    assert len(curve) in (best + 3, 4)
    assert json.loads((directory.adapter / "training.json").read_text())["held_out_loss"] == pytest.approx(curve[best])


def test_a_missing_corpus_is_one_clear_error(tmp_path, config, monkeypatch):
    monkeypatch.undo()
    with config.unlocked():
        config.data.corpus = str(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"python -m cudal1_jax\.corpus"):
        sft.run(config, open_run(tmp_path / "run", config), load_policy=toy_policy)


def test_a_corpus_too_small_for_one_batch_is_refused(tmp_path, config):
    with config.unlocked():
        config.data.rows, config.micro_batches, config.data.passes, config.schedule.warmup_steps = 64, 1, 1, 0
    with pytest.raises(RunError, match="fills no batch of 64 rows"):
        sft.run(config, open_run(tmp_path / "run", config), load_policy=toy_policy)


def test_a_warm_up_longer_than_the_run_is_the_users_error(tmp_path, config):
    with config.unlocked():
        config.schedule.warmup_steps = 1000
    with pytest.raises(RunError, match=r"config\.schedule: warm-up must be shorter .* saw 1000 of 20 steps"):
        sft.run(config, open_run(tmp_path / "run", config), load_policy=toy_policy)


@pytest.mark.usefixtures("config")
def test_a_chain_is_trained_on_or_held_out_never_both():
    train, held_out = sft_examples.load("x", Letters(), row_tokens=64, held_out_share=0.3)
    assert len(train) + len(held_out) == 60
    assert sft_examples.is_held_out("chain 1", 1.0)
    assert not sft_examples.is_held_out("chain 1", 0.0)


def test_only_the_completion_and_its_end_are_learnt():
    example = Tokens(prompt=(1, 5, 6, 1), completion=(7, 8, 2))
    features = packing.features(example)
    assert features["tokens"].tolist() == [1, 5, 6, 1, 7, 8]
    # position 3 reads the last token of the request and must say 7; one later would leave the first word unlearnt
    assert features["mask"].tolist() == [0, 0, 0, 1, 1, 1]
    assert features["targets"][3:].tolist() == [7, 8, 2]
