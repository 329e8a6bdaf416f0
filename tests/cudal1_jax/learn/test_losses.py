"""Losses: for each a number worked out by hand, an invariance, and a gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import losses

LOGPROBS = jnp.log(jnp.array([[0.6, 0.5, 0.2], [0.1, 0.9, 0.3]]))
OLD = jnp.log(jnp.array([[0.4, 0.5, 0.4], [0.2, 0.9, 0.1]]))  # ratios 1.5, 1, 0.5 and 0.5, 1, 3
REFERENCE = jnp.log(jnp.array([[0.3, 0.5, 0.1], [0.1, 0.8, 0.3]]))
ADVANTAGES = jnp.array([1.0, -2.0])
MASK = jnp.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
CLIP = {"clip_low": 0.2, "clip_high": 0.28}


def mean(total):
    return total.sum / total.denominator


def grpo(
    logprobs, *, old=OLD, reference=REFERENCE, kl_weight=0.0, kl=losses.kl_k3, aggregate=losses.token_mean, **options
):
    return losses.grpo(
        logprobs, old, reference, ADVANTAGES, MASK, **CLIP, kl=kl, kl_weight=kl_weight, aggregate=aggregate, **options
    )


def surrogate(logprobs, old=OLD):
    return losses.clipped_surrogate(losses.token_log_ratio(logprobs, old, MASK), ADVANTAGES[:, None], **CLIP)


def test_clipped_surrogate_takes_the_smaller_of_both_branches():
    per_token = surrogate(LOGPROBS)
    # A > 0: 1.5 is clipped to 1.28 (clip-high, 1.2 would be the symmetric bug), 0.5 is not clipped.
    # A < 0: 0.5 is clipped to 0.8 (unclipped: 1.0), 3 is not clipped: a bad token that became likely is pushed in full.
    np.testing.assert_allclose(per_token, [[-1.28, -1.0, -0.5], [1.6, 2.0, 6.0]], rtol=1e-5)


def test_clip_stops_the_gradient_only_where_it_is_active():
    gradient = jax.grad(lambda x: jnp.sum(surrogate(x)))(LOGPROBS)
    # d/dlogp of -rho A = -rho A where not clipped
    np.testing.assert_allclose(gradient, [[0.0, -1.0, -0.5], [0.0, 2.0, 6.0]], rtol=1e-5)
    active = losses.clip_active(LOGPROBS - OLD, ADVANTAGES[:, None], **CLIP)
    np.testing.assert_array_equal(active, [[1, 0, 0], [1, 0, 0]])


def test_token_mean_weighs_tokens_and_sequence_mean_weighs_sequences():
    values = jnp.array([[1.0, 2.0, 3.0], [10.0, 20.0, 99.0]])
    np.testing.assert_allclose(mean(losses.token_mean(values, MASK)), 36 / 5)  # with the masked 99: 22.5
    np.testing.assert_allclose(mean(losses.sequence_mean(values, MASK)), (2 + 15) / 2)
    np.testing.assert_allclose(mean(losses.constant_length_mean(4)(values, MASK)), 36 / 8)


@pytest.mark.parametrize(
    "aggregate",
    [losses.token_mean, losses.sequence_mean, losses.constant_length_mean(5)],
    ids=["token", "seq", "const"],
)
def test_totals_of_parts_add_up_to_the_total_of_the_whole(aggregate):
    values = jax.random.normal(jax.random.key(0), (6, 7))
    mask = (jnp.arange(7)[None] < jnp.array([7, 1, 0, 3, 5, 2])[:, None]).astype(jnp.float32)
    whole = aggregate(values, mask)
    parts = [aggregate(values[i : i + 2], mask[i : i + 2]) for i in (0, 2, 4)]
    np.testing.assert_allclose(sum(part.sum for part in parts), whole.sum, rtol=1e-6)
    assert sum(part.denominator for part in parts) == whole.denominator


@pytest.mark.parametrize("poison", [jnp.inf, -jnp.inf, jnp.nan])
@pytest.mark.parametrize("aggregate", [losses.token_mean, losses.sequence_mean], ids=["token", "sequence"])
def test_a_masked_position_leaves_no_trace_in_value_or_gradient(aggregate, poison):
    poisoned = LOGPROBS.at[1, 2].set(poison)
    np.testing.assert_allclose(
        mean(losses.reinforce(poisoned, ADVANTAGES, MASK, aggregate=aggregate)),
        mean(losses.reinforce(LOGPROBS, ADVANTAGES, MASK, aggregate=aggregate)),
    )
    gradient = jax.grad(lambda x: losses.reinforce(x, ADVANTAGES, MASK, aggregate=aggregate).sum)(poisoned)
    assert np.isfinite(gradient).all()
    assert gradient[1, 2] == 0


def test_kl_estimators_by_hand():
    # token 0: log-ratio ln(0.6 / 0.3) = ln 2
    np.testing.assert_allclose(losses.kl_k1(LOGPROBS, REFERENCE)[0, 0], 0.693147, rtol=1e-5)
    np.testing.assert_allclose(losses.kl_k2(LOGPROBS, REFERENCE)[0, 0], 0.240227, rtol=1e-5)
    # k3 = 1/2 + ln 2 - 1; with the ratio upside down it would be 2 - ln 2 - 1 = 0.306853
    np.testing.assert_allclose(losses.kl_k3(LOGPROBS, REFERENCE)[0, 0], 0.193147, rtol=1e-4)


def test_kl_estimates_agree_with_the_exact_divergence():
    logits, reference_logits = jax.random.normal(jax.random.key(1), (2, 6))
    logp, logq = jax.nn.log_softmax(logits), jax.nn.log_softmax(0.5 * reference_logits)
    exact = jnp.sum(jnp.exp(logp) * (logp - logq))
    for estimator in (losses.kl_k1, losses.kl_k3):  # expectation under pi, no sampling
        np.testing.assert_allclose(jnp.sum(jnp.exp(logp) * estimator(logp, logq)), exact, rtol=1e-5)


def test_gradient_of_k2_is_that_of_the_divergence_and_of_k1_is_none():
    logits, reference_logits = jax.random.normal(jax.random.key(2), (2, 6))
    logq = jax.nn.log_softmax(reference_logits)

    def exact(x):
        logp = jax.nn.log_softmax(x)
        return jnp.sum(jnp.exp(logp) * (logp - logq))

    def as_loss(estimator):  # samples are drawn from pi, then held fixed
        return lambda x: jnp.sum(jax.lax.stop_gradient(jax.nn.softmax(x)) * estimator(jax.nn.log_softmax(x), logq))

    np.testing.assert_allclose(jax.grad(as_loss(losses.kl_k2))(logits), jax.grad(exact)(logits), atol=1e-6)
    np.testing.assert_allclose(jax.grad(as_loss(losses.kl_k1))(logits), 0.0, atol=1e-6)


@pytest.mark.parametrize("estimator", [losses.kl_k1, losses.kl_k2, losses.kl_k3], ids=lambda f: f.__name__)
def test_kl_of_a_policy_with_itself_is_zero(estimator):
    np.testing.assert_array_equal(estimator(LOGPROBS, LOGPROBS), 0.0)


def test_kl_k3_keeps_its_digits_near_zero():
    # exp(x) - x - 1 at x = 1e-3; written without expm1, float32 can only give multiples of 1.2e-7 (4.8e-7 here)
    np.testing.assert_allclose(losses.kl_k3(jnp.array([[0.0]]), jnp.array([[1e-3]]))[0, 0], 5.00167e-7, rtol=2e-3)


@pytest.mark.parametrize("estimator", [losses.kl_k1, losses.kl_k2, losses.kl_k3], ids=lambda f: f.__name__)
def test_far_apart_policies_stay_finite(estimator):
    near, far = jnp.array([[-0.1]]), jnp.array([[-400.0]])
    for a, b in ((near, far), (far, near)):
        assert np.isfinite(jax.value_and_grad(lambda x, y=b: estimator(x, y)[0, 0])(a)[0])
    assert np.isfinite(
        losses.clipped_surrogate(losses.token_log_ratio(near, far, near), jnp.array([[-1.0]]), **CLIP)
    ).all()


def test_grpo_adds_the_penalty_with_its_weight():
    surrogate = (-1.28 - 1.0 - 0.5 + 1.6 + 2.0) / 5
    k3 = losses.kl_k3(LOGPROBS, REFERENCE)
    penalty = (k3[0].sum() + k3[1, :2].sum()) / 5
    np.testing.assert_allclose(mean(grpo(LOGPROBS)), surrogate, rtol=1e-5)
    np.testing.assert_allclose(mean(grpo(LOGPROBS, kl_weight=0.04)), surrogate + 0.04 * penalty, rtol=1e-5)


def test_on_policy_grpo_has_the_gradient_of_reinforce():
    for aggregate in (losses.token_mean, losses.sequence_mean):
        ours = jax.grad(lambda x, a=aggregate: grpo(x, old=x, aggregate=a).sum)(LOGPROBS)
        plain = jax.grad(lambda x, a=aggregate: losses.reinforce(x, ADVANTAGES, MASK, aggregate=a).sum)(LOGPROBS)
        np.testing.assert_allclose(ours, plain, rtol=1e-5)


def test_grpo_is_constant_in_old_and_reference():
    gradient = jax.grad(lambda old, reference: grpo(LOGPROBS, old=old, reference=reference, kl_weight=1.0).sum, (0, 1))
    for value in gradient(OLD, REFERENCE):
        np.testing.assert_array_equal(value, 0.0)


def test_grpo_ignores_the_order_of_samples():
    swapped = losses.grpo(
        LOGPROBS[::-1], OLD[::-1], REFERENCE[::-1], ADVANTAGES[::-1], MASK[::-1],
        **CLIP, kl=losses.kl_k3, kl_weight=0.1, aggregate=losses.sequence_mean,
    )  # fmt: skip
    np.testing.assert_allclose(
        swapped.sum, grpo(LOGPROBS, kl_weight=0.1, aggregate=losses.sequence_mean).sum, rtol=1e-6
    )


GSPO = {"ratio": losses.sequence_log_ratio, "aggregate": losses.sequence_mean}


def test_sequence_ratio_is_the_geometric_mean_over_the_tokens_that_count():
    # sequence 1: (1.5 * 1 * 0.5)^(1/3) = 0.908560; 2: (0.5 * 1)^(1/2) = 0.707107, with the masked 3: 1.144714
    ratio = jnp.exp(losses.sequence_log_ratio(LOGPROBS, OLD, MASK))
    np.testing.assert_allclose(ratio, [[0.908560] * 3, [0.707107] * 3], rtol=1e-5)


def test_gspo_by_hand_clips_whole_sequences_on_both_sides():
    # -0.908560 * 1, inside the clip; 0.707107 is below 0.8 and A = -2: 0.8 * 2. Clipped by token: -0.9267 and 1.8
    np.testing.assert_allclose(mean(grpo(LOGPROBS, **GSPO)), (-0.908560 + 1.6) / 2, rtol=1e-5)
    # upside down: 1 / 0.908560 = 1.100643 counts in full, 1.414214 at A = -2 is not clipped: only A > 0 is above
    np.testing.assert_allclose(mean(grpo(OLD, old=LOGPROBS, **GSPO)), (-1.100643 + 2.828427) / 2, rtol=1e-5)


def test_gspo_gradient_is_spread_evenly_over_a_sequence_and_none_where_it_is_clipped():
    gradient = jax.grad(lambda x: grpo(x, **GSPO).sum)(LOGPROBS)
    # d/dlogp of -s A = -s A / |y|
    np.testing.assert_allclose(gradient, [[-0.908560 / 3] * 3, [0.0] * 3], rtol=1e-5)
    on_policy = jax.grad(lambda x: grpo(x, old=x, **GSPO).sum)(LOGPROBS)  # at ratio 1 it is that of GRPO
    np.testing.assert_allclose(
        on_policy, jax.grad(lambda x: grpo(x, old=x, aggregate=losses.sequence_mean).sum)(LOGPROBS), rtol=1e-5
    )


def test_gspo_does_not_depend_on_where_in_a_sequence_a_ratio_is():
    turned = grpo(LOGPROBS.at[0].set(jnp.roll(LOGPROBS[0], 1)), old=OLD.at[0].set(jnp.roll(OLD[0], 1)), **GSPO)
    np.testing.assert_allclose(mean(turned), mean(grpo(LOGPROBS, **GSPO)), rtol=1e-6)


def test_dr_grpo_by_hand():
    # tokens as in `test_clipped_surrogate...`, each a fourth of 1 / 2; the sequence mean would be 0.4367
    total = grpo(LOGPROBS, aggregate=losses.constant_length_mean(4))
    np.testing.assert_allclose(mean(total), (-1.28 - 1.0 - 0.5 + 1.6 + 2.0) / (2 * 4), rtol=1e-5)
    gradient = jax.grad(lambda x: mean(grpo(x, aggregate=losses.constant_length_mean(4))))(LOGPROBS)
    np.testing.assert_allclose(gradient, jnp.array([[0.0, -1.0, -0.5], [0.0, 2.0, 0.0]]) / 8, rtol=1e-5)


def test_importance_weights_are_capped_scale_the_surrogate_and_are_constants():
    weights = losses.truncated_importance(jnp.log(jnp.array([[0.5, 9.0]])), cap=2.0)
    np.testing.assert_allclose(weights, [[0.5, 2.0]], rtol=1e-6)

    def total(x, sampler):
        weights = losses.truncated_importance(losses.token_log_ratio(x, sampler, MASK), cap=2.0)
        return grpo(x, weights=weights).sum

    # ratios to a sampler of 0.3 everywhere: 2, 1.67, 0.67 and 0.33, 2 (3 without the cap)
    sampler = jnp.full_like(LOGPROBS, jnp.log(0.3))
    weighted = -1.28 * 2 - 1.0 * 5 / 3 - 0.5 * 2 / 3 + 1.6 / 3 + 2.0 * 2
    np.testing.assert_allclose(total(LOGPROBS, sampler), weighted, rtol=1e-5)
    np.testing.assert_allclose(total(LOGPROBS, LOGPROBS), grpo(LOGPROBS).sum, rtol=1e-6)  # an exact sampler: none
    by_policy, by_sampler = jax.grad(total, (0, 1))(LOGPROBS, sampler)
    np.testing.assert_allclose(by_policy, [[0.0, -5 / 3, -1 / 3], [0.0, 4.0, 0.0]], rtol=1e-5)
    np.testing.assert_array_equal(by_sampler, 0.0)


def test_a_completion_that_was_cut_does_not_count():
    mask = losses.without_overlong(MASK, jnp.array([True, False]))
    np.testing.assert_array_equal(mask, [[1, 1, 1], [0, 0, 0]])

    def loss(x, mask, aggregate=losses.sequence_mean):
        return losses.reinforce(x, ADVANTAGES, mask, aggregate=aggregate)

    # the mean is over one sequence and not over two of which one is 0
    np.testing.assert_allclose(mean(loss(LOGPROBS, mask)), 2.813411 / 3, rtol=1e-5)
    gradient = jax.grad(lambda x: loss(x, mask).sum)(LOGPROBS)
    np.testing.assert_allclose(gradient, [[-1 / 3] * 3, [0.0] * 3], rtol=1e-6)
    np.testing.assert_array_equal(losses.without_overlong(MASK, jnp.array([True, True])), MASK)


def test_reinforce_by_hand():
    total = losses.reinforce(LOGPROBS, ADVANTAGES, MASK, aggregate=losses.token_mean)
    # -(ln .6 + ln .5 + ln .2) + 2 (ln .1 + ln .9) = 2.813411 - 4.815891
    np.testing.assert_allclose(total.sum, -2.002480, rtol=1e-5)
    assert total.denominator == 5
    gradient = jax.grad(lambda x: losses.reinforce(x, ADVANTAGES, MASK, aggregate=losses.token_mean).sum)(LOGPROBS)
    np.testing.assert_allclose(gradient, [[-1, -1, -1], [2, 2, 0]])


def test_cross_entropy_by_hand():
    total = losses.cross_entropy(LOGPROBS, MASK)
    # -(ln .6 + ln .5 + ln .2 + ln .1 + ln .9) / 5; over all six positions 0.870
    np.testing.assert_allclose(mean(total), (2.813411 + 2.407946) / 5, rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda x: losses.cross_entropy(x, MASK).sum)(LOGPROBS), -MASK)
