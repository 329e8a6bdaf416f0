"""Advantages: hand-computed numbers, invariances, and the sizes where nothing can be compared."""

import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import advantage

REWARDS = jnp.array([[1.0, 2.0, 3.0, 6.0]])  # mean 3; deviations -2 -1 0 3; variance 14 / 4 = 3.5


def test_group_normalised_divides_by_the_deviation_of_g_not_g_minus_1():
    # std = sqrt(3.5) = 1.870829; G - 1 would give sqrt(14 / 3) = 2.160247 and a last value of 1.3887
    np.testing.assert_allclose(
        advantage.group_normalised(REWARDS, epsilon=0.0)[0], [-1.069045, -0.534522, 0.0, 1.603567], rtol=1e-5
    )


def test_group_centred_keeps_the_unit_of_the_reward():
    np.testing.assert_allclose(advantage.group_centred(REWARDS)[0], [-2.0, -1.0, 0.0, 3.0])


def test_leave_one_out_compares_with_the_mean_of_the_others():
    # last sample: 6 - (1 + 2 + 3) / 3 = 4; with its own reward in the mean it would be 3
    np.testing.assert_allclose(advantage.leave_one_out(REWARDS)[0], [-8 / 3, -4 / 3, 0.0, 4.0], rtol=1e-6)


@pytest.mark.parametrize(
    "function", [advantage.group_normalised, advantage.group_centred, advantage.leave_one_out], ids=lambda f: f.__name__
)
def test_each_prompt_is_compared_with_itself_only(function):
    other = jnp.array([[100.0, -50.0, 7.0, 0.0]])
    together = function(jnp.concatenate([REWARDS, other]))
    np.testing.assert_allclose(together[:1], function(REWARDS), rtol=1e-6)
    np.testing.assert_allclose(jnp.sum(together, axis=1), 0.0, atol=1e-4)


def test_group_normalised_ignores_shift_and_scale_of_the_rewards():
    np.testing.assert_allclose(
        advantage.group_normalised(10.0 * REWARDS - 7.0), advantage.group_normalised(REWARDS), rtol=1e-5
    )


@pytest.mark.parametrize("group", [1, 2, 7])
def test_equal_rewards_say_nothing_and_stay_finite(group):
    # 0.1 has no exact float32 form: a mean that is off by one unit must not become an advantage of order 1
    result = advantage.group_normalised(jnp.full((3, group), 0.1))
    np.testing.assert_allclose(result, 0.0, atol=0.05)


def test_leave_one_out_refuses_a_lone_sample():
    with pytest.raises(ValueError, match="at least 2"):
        advantage.leave_one_out(jnp.ones((4, 1)))


@pytest.mark.parametrize("shape", [(4,), (2, 0), (1, 2, 3)])
def test_rewards_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"\[prompts, samples\]"):
        advantage.group_centred(jnp.zeros(shape))
