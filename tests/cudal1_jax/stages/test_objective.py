"""Every loss in the main job's learner: one iteration's samples, one or two updates."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import checks, learning, objective, setup

PROMPTS = [Prompt(prompt=0, task="1_019", text="make it fast and right", exemplars=())]
REWARDS = [[1.5, -0.5, 0.25, -1.5]]
LENGTHS = (8, 3, 5, 8)

pytestmark = pytest.mark.usefixtures("compile_quickly")


@pytest.fixture(scope="module")
def samples():
    draw = np.random.default_rng(0)
    return [
        Sample(
            sample=number,
            prompt=0,
            text="",
            tokens=draw.integers(3, 64, length).astype(np.int32),
            logprobs=-4.0 - draw.random(length).astype(np.float32),
            finished=length < 8,
        )
        for number, length in enumerate(LENGTHS)
    ]


@pytest.fixture(scope="module")
def learnt(toy, samples, compile_quickly):
    """(change of what is trained, metrics) of a loss's first iteration; each is made once."""
    made = {}

    def once(loss):
        if loss not in made:
            page = toy.config()
            page.learn.update({"loss": loss, "prompt_bucket": 8, "micro_batches": 1} | OPTIONS.get(loss, {}))
            policy = toy.policy(page)
            learn, state = setup.learner(page, policy)
            before = jax.device_get(state.trainable)
            advantages = learning.group_advantages(REWARDS, objective.advantage_of(page))
            state, metrics = learn(state, PROMPTS, samples, advantages)
            made[loss] = jax.tree.map(lambda a, b: np.asarray(a) - b, state.trainable, before), metrics
        return made[loss]

    return once


def size(change):
    return max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(change))


OPTIONS = {"gspo": {"epochs": 2}, "ppo": {"full": True}}  # tried together: each program takes seconds to compile


@pytest.mark.parametrize("loss", objective.METHODS)
def test_every_loss_makes_an_update_and_reports(learnt, loss):
    change, metrics = learnt(loss)
    epochs = OPTIONS.get(loss, {}).get("epochs", 1)
    assert 0.01 < size(change) < 0.06 * epochs  # AdamW steps of 0.05
    assert np.isfinite(list(metrics.values())).all()
    assert metrics["learn/tokens"] == epochs * (5 + sum(LENGTHS))
    assert 3.0 < metrics["learn/entropy"] < 4.16  # ln 64 = 4.159
    assert ("learn/kl" in metrics) == (loss != "reinforce")
    assert ("learn/value_loss" in metrics) == (loss == "ppo")


def test_each_loss_has_a_gradient_of_its_own(learnt):
    norms = [learnt(loss)[1]["learn/grad_norm"] for loss in objective.METHODS]
    assert all(abs(a - b) > 1e-2 * a for a, b in itertools.combinations(norms, 2))


def test_clips_act_from_the_second_epoch_on(learnt):
    for loss in ("grpo", "dapo", "ppo"):
        assert learnt(loss)[1]["learn/clip_fraction"] == 0.0
    _, metrics = learnt("gspo")  # its clips are three ten-thousandths wide, and the rate is large
    assert metrics["learn/clip_fraction"] == pytest.approx(1.0)
    assert metrics["learn/kl"] > 0.0  # to the policy of before the first


def test_ppo_trains_a_critic_beside_all_parameters(learnt, toy):
    change, metrics = learnt("ppo")
    assert size(change.value_weight) > 0.01
    assert change.actor.keys() == toy.policy(toy.config()).params.keys()
    assert all(size(leaf) > 0.01 for leaf in change.actor.values())
    # all values are 0, and the return at every token is the centred reward R: the mean over tokens of R^2 / 2
    centred = np.array(REWARDS[0]) - np.mean(REWARDS[0])
    expected = sum(n * r * r / 2 for n, r in zip(LENGTHS, centred, strict=True)) / sum(LENGTHS)
    assert metrics["learn/value_loss"] == pytest.approx(expected, rel=1e-4)


def test_completions_that_were_cut_do_not_count_on_request(toy, samples):
    page = toy.config()
    page.learn.mask_overlong = True
    learn, state = setup.learner(page, toy.policy(page))
    cut = [dataclasses.replace(sample, finished=False) for sample in samples]
    assert learn(state, PROMPTS, cut, REWARDS[0]) == (state, {"learn/skipped": 1.0})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "trpo"}, r"config.learn.loss: 'trpo' is none of grpo, dr_grpo, dapo, gspo, ppo, reinforce"),
        ({"advantage": "best"}, r"config.learn.advantage: 'best' is none of normalised, "),
        ({"loss": "reinforce", "epochs": 2}, r"config.learn.epochs: reinforce has no ratio"),
        ({"epochs": 0}, r"config.learn.epochs: seen 0"),
    ],
)
def test_what_no_loss_can_use_is_refused_with_its_key(toy, changes, message):
    page = toy.config()
    page.learn.update(changes)
    with pytest.raises(RunError, match=message):
        checks._check_learning(page)


def test_a_group_of_one_has_nobody_to_be_compared_with(toy):
    page = toy.config()
    page.rollout.group = page.learn.micro_batches = 1
    with pytest.raises(RunError, match=r"config.rollout.group: the advantage compares"):
        checks._check_learning(page)
    page.learn.advantage = "reward"
    checks._check_learning(page)
