"""Updates: exact under any micro-batches and slices, donating, and the same for a prompt that is shared or alone."""

import dataclasses
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import batch, losses, objectives, optimizer, step

N, G = 2, 4
RAGGED = [3, 1, 5, 2, 4, 0, 5, 1]  # lengths of completions; unequal, so that a mean of means would be wrong


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
    reference = -jnp.asarray(draw.random(completions.tokens.shape), jnp.float32)
    return prompts, dataclasses.replace(completions, reference_logprobs=reference)


def objective(toy, aggregate=losses.token_mean, **changes):
    return objectives.grpo(toy.config, **{
        "clip_low": 0.2, "clip_high": 0.28, "kl": losses.kl_k3, "kl_weight": 0.1, "aggregate": aggregate,
        "temperature": 0.9, "on_policy": False, "chunk": 8, **changes,
    })  # fmt: skip


def assert_close(found, wanted):
    """Equal up to the rounding of float32 sums in another order."""
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6 * (1 + float(jnp.abs(b).max()))), found, wanted
    )


def test_micro_batches_and_slices_change_nothing(toy, grpo_batch):
    goal = objective(toy, losses.sequence_mean)
    accumulate = jax.jit(lambda shared, rows: step.accumulate(goal, toy.adapter, toy.params, shared, rows))
    whole = accumulate(*step.split(*grpo_batch, slices=1, micro_batches=1))
    # the mean of the parts' means would be wrong: the parts have 3, 2, 2 and 0 sequences with tokens, or 1 to 9 tokens
    assert_close(accumulate(*step.split(*grpo_batch, slices=2, micro_batches=2)), whole)


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


def test_packed_completions_have_the_gradients_and_log_probs_of_padded_ones(toy, grpo_batch):
    prompts, rows = grpo_batch
    goal, score = objective(toy, losses.sequence_mean), objectives.make_scorer(toy.config, temperature=0.9, chunk=8)
    accumulate = jax.jit(lambda shared, rows: step.accumulate(goal, toy.adapter, toy.params, shared, rows))
    padded = step.split(prompts, rows, slices=1, micro_batches=1)
    packed = batch.split(prompts, rows, slices=2, micro_batches=2, bucket=2)
    assert packed[1].row_tokens == 6  # of 16 places: lengths 3 1 5 2 | 4 0 5 1 become 5 + 1, 3 + 2 | 5 + 0, 4 + 1
    assert_close(accumulate(*packed), accumulate(*padded))
    ours, plain = score(toy.adapter, toy.params, *packed), score(toy.adapter, toy.params, *padded)[0, 0]
    by_row = {tuple(tokens): line for tokens, line in zip(rows.tokens.tolist(), plain, strict=True)}
    found = zip(packed[1].tokens.reshape(N * G, -1).tolist(), ours.reshape(N * G, -1), strict=True)
    assert all(np.allclose(line, by_row[tuple(tokens)], atol=1e-5) for tokens, line in found)


def test_micro_batches_are_balanced_and_keep_every_row_with_its_prompt(grpo_batch):
    _, rows = batch.split(*grpo_batch, slices=1, micro_batches=2, bucket=1)
    sizes = rows.mask.sum(axis=-1).astype(int).tolist()  # [1, M, N G / M]: of both prompts two rows
    assert sizes == [[[5, 1, 5, 0], [3, 2, 4, 1]]]
    assert rows.row_tokens == 6
    assert sorted(np.ravel(rows.advantages)) == sorted(np.ravel(grpo_batch[1].advantages))


@pytest.fixture(scope="module")
def update(toy):
    transform = optimizer.build(1e-2, clip_norm=10.0)
    return transform, step.make_update(objective(toy), transform)


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
    assert set(metrics) == {"loss", "kl", "clip_fraction", "sampler_gap", "grad_norm", "update_norm"}


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


def test_on_policy_is_off_policy_at_ratio_one_and_the_kl_to_the_beginning_is_zero(toy, grpo_batch):
    prompts, rows = grpo_batch
    score = objectives.make_scorer(toy.config, temperature=0.9, chunk=8)
    logprobs = score(toy.adapter, toy.params, *step.split(prompts, rows, slices=1, micro_batches=1))[0, 0]
    exact = dataclasses.replace(rows, sampler_logprobs=logprobs, reference_logprobs=logprobs)
    none = dataclasses.replace(exact, sampler_logprobs=jnp.zeros_like(logprobs))  # on-policy must not look at them

    def accumulate(rows, on_policy):
        goal = objective(toy, on_policy=on_policy)
        parts = step.split(prompts, rows, slices=1, micro_batches=1)
        return jax.jit(lambda a, s, r: step.accumulate(goal, a, toy.params, s, r))(toy.adapter, *parts)

    (ours, totals), (expected, others) = accumulate(none, True), accumulate(exact, False)
    assert_close(ours, expected)
    assert abs(float(totals["kl"].sum)) < 1e-6
    assert float(others["sampler_gap"].sum) < 1e-4 < float(totals["sampler_gap"].sum)
    unscored = dataclasses.replace(none, reference_logprobs=jnp.full_like(logprobs, jnp.nan))
    again, totals = accumulate(unscored, True)  # no reference pass: it is the present policy
    assert_close(again, ours)
    assert float(totals["kl"].sum) == 0.0


def test_full_fine_tuning_trains_every_parameter(toy, grpo_batch):
    goal = objective(toy, full=True)
    parts = step.split(*grpo_batch, slices=1, micro_batches=1)
    gradients, _ = jax.jit(lambda p, s, r: step.accumulate(goal, p, (), s, r))(toy.params, *parts)
    assert all(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(gradients))


def test_importance_weights_are_capped_and_scale_the_surrogate():
    weights = losses.truncated_importance(jnp.log(jnp.array([[0.2, 0.9]])), jnp.log(jnp.array([[0.4, 0.1]])), cap=2.0)
    np.testing.assert_allclose(weights, [[0.5, 2.0]], rtol=1e-6)  # 9 without the cap
