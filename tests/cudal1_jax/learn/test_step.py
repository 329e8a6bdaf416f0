"""Updates: the gradient of plain whole sequences, whatever is shared, packed and split; donating; safe from NaN."""

import dataclasses
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import batch, losses, objectives, optimizer, step, values
from cudal1_jax.policy import decoder

N, G = 2, 4
RAGGED = [3, 1, 5, 2, 4, 0, 5, 1]  # lengths of completions; unequal, so that a mean of means would be wrong
TEMPERATURE = 0.9
OPTIONS = {
    "clip_low": 0.2, "clip_high": 0.28, "kl": losses.kl_k3, "kl_weight": 0.1, "aggregate": losses.sequence_mean,
}  # fmt: skip


@pytest.fixture(scope="module")
def grpo_batch():
    draw = np.random.default_rng(0)
    prompts = batch.prompts([draw.integers(0, 50, size).tolist() for size in (6, 3)], bucket=4)
    completions = batch.completions(
        [draw.integers(0, 50, size).tolist() for size in RAGGED],
        advantages=draw.normal(size=N * G).tolist(),
        sampler_logprobs=[(-draw.random(size)).tolist() for size in RAGGED],
        bucket=4,
    )
    reference, old = (-jnp.asarray(draw.random(completions.tokens.shape), jnp.float32) for _ in range(2))
    return prompts, dataclasses.replace(completions, reference_logprobs=reference, old_logprobs=old)


@pytest.fixture(scope="module")
def objective(toy):
    return objectives.grpo(toy.config, **OPTIONS, temperature=TEMPERATURE, importance_cap=2.0, chunk=8)


@pytest.fixture(scope="module")
def accumulate(toy, objective):
    """(prompts, rows) -> gradient and totals, of packed micro-batches."""
    compiled = jax.jit(lambda shared, rows: step.accumulate(objective, toy.adapter, toy.params, shared, rows))
    return lambda *arrays: compiled(*batch.split(*arrays, slices=2, micro_batches=2, bucket=2))


def assert_close(found, wanted):
    """Equal up to the rounding of float32 sums in another order."""
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=5e-6 * (1 + float(jnp.abs(b).max()))), found, wanted
    )


def whole_sequences(toy, adapter, prompts, rows):
    """Log-probs and entropies [B, T] of completions, each run by itself after its prompt, and nothing shared."""
    T = rows.tokens.shape[1]
    starts = jnp.repeat(prompts.lengths, G)[:, None] + jnp.arange(T)[None]  # [B, T], where a completion's tokens lie
    number = jnp.arange(N * G)[:, None]
    tokens = jnp.pad(jnp.repeat(prompts.tokens, G, axis=0), [(0, 0), (0, T)]).at[number, starts].set(rows.tokens)
    hidden = decoder.forward(toy.config, toy.params, tokens, adapter=adapter)
    scores = jax.nn.log_softmax(decoder.logits(toy.config, toy.params, hidden) / TEMPERATURE)
    entropy = -jnp.sum(jnp.exp(scores) * scores, axis=-1)
    return scores[number, starts - 1, rows.tokens] * rows.mask, entropy[number, starts - 1] * rows.mask


def test_shared_packed_and_split_completions_have_the_gradient_of_whole_sequences(toy, grpo_batch, accumulate):
    prompts, rows = grpo_batch

    def plain(adapter):
        present, entropy = whole_sequences(toy, adapter, prompts, rows)
        weights = losses.truncated_importance(rows.old_logprobs - rows.sampler_logprobs, cap=2.0)
        total = losses.grpo(
            present, rows.old_logprobs, rows.reference_logprobs, rows.advantages, rows.mask, **OPTIONS, weights=weights
        )
        reports = {
            "loss": total,
            "entropy": losses.token_mean(entropy, rows.mask),
            "kl": losses.token_mean(losses.kl_k3(present, rows.reference_logprobs), rows.mask),
            "sampler_gap": losses.token_mean(jnp.abs(present - rows.sampler_logprobs), rows.mask),
        }
        return total.sum, reports

    gradients, totals = accumulate(prompts, rows)
    expected, reports = jax.jit(jax.grad(plain, has_aux=True))(toy.adapter)
    # the mean of the parts' means would be wrong: they have 2, 2, 1 and 2 sequences with tokens
    assert_close(gradients, expected)
    assert_close({name: totals[name] for name in reports}, reports)


def test_completions_lie_packed_in_rows_of_the_bucket(grpo_batch):
    _, rows = batch.split(*grpo_batch, slices=2, micro_batches=2, bucket=2)
    assert rows.row_tokens == 6  # of 16 places: lengths 3 1 5 2 | 4 0 5 1 become 5 + 1, 3 + 2 | 5 + 0, 4 + 1


def test_split_keeps_the_rows_of_a_prompt_with_it(grpo_batch):
    prompts, completions = grpo_batch
    shared, rows = step.split(prompts, completions, slices=2, micro_batches=2)
    assert shared.tokens.shape == (2, 1, *prompts.tokens.shape[1:])
    assert rows.tokens.shape == (2, 2, 2, completions.tokens.shape[1])
    np.testing.assert_array_equal(rows.advantages.reshape(-1), completions.advantages)
    _, rows = step.split(prompts, completions, slices=1, micro_batches=2)  # both prompts in each micro-batch, in order
    np.testing.assert_array_equal(rows.advantages[0, 0], completions.advantages[jnp.array([0, 1, 4, 5])])


@pytest.mark.parametrize(("slices", "micro_batches"), [(3, 1), (1, 3), (2, 8)])
def test_a_batch_that_does_not_divide_is_refused(grpo_batch, slices, micro_batches):
    for split in (step.split, functools.partial(batch.split, bucket=1)):
        with pytest.raises(ValueError, match="2 prompts with 8 rows cannot be split"):
            split(*grpo_batch, slices=slices, micro_batches=micro_batches)


def test_micro_batches_are_balanced_and_keep_every_row_with_its_prompt(grpo_batch):
    _, rows = batch.split(*grpo_batch, slices=1, micro_batches=2, bucket=1)
    sizes = rows.mask.sum(axis=-1).astype(int).tolist()  # [1, M, N G / M]: of both prompts two rows
    assert sizes == [[[5, 1, 5, 0], [3, 2, 4, 1]]]
    assert rows.row_tokens == 6
    assert sorted(np.ravel(rows.advantages)) == sorted(np.ravel(grpo_batch[1].advantages))


@pytest.fixture(scope="module")
def update(objective):
    transform = optimizer.build(1e-2, clip_norm=10.0)
    return transform, step.make_update(objective, transform)


def test_an_update_lowers_the_loss_and_leaves_the_caller_its_arrays(toy, grpo_batch, update):
    transform, make = update
    state = step.init(toy.adapter, transform)
    parts = step.split(*grpo_batch, slices=1, micro_batches=2)
    curve = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a donation that cannot be used only warns
        for _ in range(6):
            before = state
            state, metrics = make(state, toy.params, *parts)
            curve.append(float(metrics["loss"]))
    assert curve[-1] < curve[0]
    assert int(state.step) == 6
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before.trainable))  # donated
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((toy.adapter, toy.params)))
    assert set(metrics) == {"loss", "kl", "clip_fraction", "entropy", "sampler_gap", "grad_norm", "update_norm"}


def test_a_second_batch_of_one_shape_is_not_compiled_again(toy, grpo_batch, update):
    transform, make = update
    parts = step.split(*grpo_batch, slices=1, micro_batches=2)
    make(step.init(toy.adapter, transform), toy.params, *parts)
    compiled = make._cache_size()
    other = dataclasses.replace(grpo_batch[1], advantages=-grpo_batch[1].advantages)
    make(step.init(toy.adapter, transform), toy.params, *step.split(grpo_batch[0], other, slices=1, micro_batches=2))
    assert make._cache_size() == compiled


def test_a_batch_without_tokens_changes_nothing(toy, grpo_batch, update):
    transform, make = update
    prompts, rows = grpo_batch
    empty = dataclasses.replace(rows, mask=jnp.zeros_like(rows.mask))
    state, metrics = make(
        step.init(toy.adapter, transform), toy.params, *step.split(prompts, empty, slices=1, micro_batches=2)
    )
    assert float(metrics["loss"]) == 0.0
    jax.tree.map(np.testing.assert_array_equal, state.trainable, toy.adapter)


@pytest.mark.parametrize("broken", ["advantages", "sampler_logprobs"])
def test_a_gradient_that_is_not_finite_changes_nothing_and_is_reported(toy, grpo_batch, update, broken):
    transform, make = update
    prompts, rows = grpo_batch
    rows = dataclasses.replace(rows, **{broken: jnp.full_like(getattr(rows, broken), jnp.nan)})
    state = step.init(toy.adapter, transform)
    before = jax.device_get(state)
    state, metrics = make(state, toy.params, *step.split(prompts, rows, slices=1, micro_batches=2))
    assert not np.isfinite(metrics["loss"])
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(state), before)


def test_on_policy_is_off_policy_at_ratio_one_and_the_kl_to_the_beginning_is_zero(toy, grpo_batch, accumulate):
    prompts, rows = grpo_batch
    score = jax.jit(functools.partial(whole_sequences, toy))
    logprobs, _ = score(toy.adapter, prompts, rows)
    exact = dataclasses.replace(rows, old_logprobs=logprobs, reference_logprobs=logprobs)
    (ours, totals), (expected, others) = accumulate(*on_policy(prompts, exact)), accumulate(prompts, exact)
    assert_close(ours, expected)
    assert_close(totals, others)
    assert abs(float(totals["kl"].sum)) < 1e-6
    unscored = dataclasses.replace(exact, reference_logprobs=jnp.full_like(logprobs, jnp.nan))
    again, totals = accumulate(*on_policy(prompts, unscored))  # no reference pass: it is the present policy
    assert_close(again, ours)
    assert float(totals["kl"].sum) == 0.0


def on_policy(prompts, rows):
    return prompts, dataclasses.replace(rows, old_logprobs=None)


def test_full_fine_tuning_by_ppo_trains_every_parameter_and_the_critic(toy, grpo_batch):
    options = OPTIONS | {"aggregate": losses.token_mean, "discount": 1.0, "gae_decay": 0.9, "value_clip": 0.2}
    goal = objectives.ppo(
        toy.config, **options, value_weight=0.5, entropy_weight=0.1, temperature=1.0, chunk=8, remat="dots", full=True
    )
    parts = batch.split(*grpo_batch, slices=2, micro_batches=2, bucket=2)
    trainable = values.with_critic(toy.params, toy.config.width)
    gradients, totals = jax.jit(lambda t, s, r: step.accumulate(goal, t, (), s, r))(trainable, *parts)
    assert all(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(gradients))
    # the values are 0 yet, and the return at a token is the reward decayed by the tokens that follow: 0.5 R^2 each
    rewards, lengths = grpo_batch[1].advantages, np.array(RAGGED)
    expected = sum(
        0.5 * float(r) ** 2 * 0.81**later for r, n in zip(rewards, lengths, strict=True) for later in range(n)
    )
    np.testing.assert_allclose(totals["value_loss"].sum, expected, rtol=1e-5)
    # d/db of 0.5 * (V - G)^2, V = 0, weighed by 0.5
    by_bias = -0.5 * sum(float(r) * 0.9**later for r, n in zip(rewards, lengths, strict=True) for later in range(n))
    np.testing.assert_allclose(gradients.value_bias, by_bias, rtol=1e-4)
