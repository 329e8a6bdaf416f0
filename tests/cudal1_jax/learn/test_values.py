"""The critic: advantages and value loss by hand, what they do not depend on, and where gradients go."""

import jax
import jax.numpy as jnp
import numpy as np

from cudal1_jax.learn import values

REWARDS = jnp.array([1.0, -1.0])
VALUES = jnp.array([[0.5, 0.2, 0.4], [0.1, 0.3, 9.0]])
MASK = jnp.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])


def test_gae_by_hand():
    advantages, returns = values.gae(REWARDS, VALUES, MASK, discount=0.9, decay=0.5)
    # deltas: 0.9 * 0.2 - 0.5 = -0.32, 0.9 * 0.4 - 0.2 = 0.16, 1 - 0.4 = 0.6; decayed by 0.45 a token
    # second row: 0.9 * 0.3 - 0.1 = 0.17, -1 - 0.3 = -1.3; the value 9 of the padding counts nowhere (else: 7.1)
    np.testing.assert_allclose(advantages, [[-0.1265, 0.43, 0.6], [-0.415, -1.3, 0.0]], rtol=1e-5)
    np.testing.assert_allclose(returns, [[0.3735, 0.63, 1.0], [-0.315, -1.0, 0.0]], rtol=1e-5)


def test_without_discount_and_decay_every_token_has_the_reward_less_its_value():
    advantages, returns = values.gae(REWARDS, VALUES, MASK, discount=1.0, decay=1.0)
    np.testing.assert_allclose(advantages, (REWARDS[:, None] - VALUES) * MASK, atol=1e-6)
    np.testing.assert_allclose(returns, REWARDS[:, None] * MASK, atol=1e-6)


def test_padding_and_the_other_rows_change_nothing():
    advantages, _ = values.gae(REWARDS, VALUES, MASK, discount=0.9, decay=0.5)
    wide = [jnp.pad(x[1:], [(0, 0), (0, 4)], constant_values=padding) for x, padding in ((VALUES, 7.0), (MASK, 0.0))]
    alone, _ = values.gae(REWARDS[1:], *wide, discount=0.9, decay=0.5)
    np.testing.assert_allclose(alone[0, :3], advantages[1], rtol=1e-6)
    np.testing.assert_array_equal(alone[0, 3:], 0.0)


def test_a_perfect_critic_leaves_no_advantage_and_none_has_a_gradient():
    perfect = jnp.broadcast_to(REWARDS[:, None], MASK.shape)
    advantages, _ = values.gae(REWARDS, perfect, MASK, discount=1.0, decay=0.9)
    np.testing.assert_allclose(advantages, 0.0, atol=1e-6)
    gradient = jax.grad(lambda v: jnp.sum(values.gae(REWARDS, v, MASK, discount=1.0, decay=0.9)[0]))(VALUES)
    np.testing.assert_array_equal(gradient, 0.0)


def test_clipped_value_loss_by_hand_and_its_gradient():
    found, old, returns = jnp.array([0.1, 0.9, 0.5, -0.9]), jnp.zeros(4), jnp.ones(4)

    def loss(v):
        return values.clipped_value_loss(v, old, returns, clip=0.2)

    # 0.9 is counted as 0.2 (unclipped: 0.005), 0.5 as well; -0.9 is the worse of 1.9 and 1.2 and not clipped
    np.testing.assert_allclose(loss(found), [0.405, 0.32, 0.32, 1.805], rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda v: jnp.sum(loss(v)))(found), [-0.9, 0.0, 0.0, -1.9], rtol=1e-5)


def test_a_new_critic_predicts_nothing_and_learns_without_changing_what_it_reads():
    critic = values.with_critic({"a": jnp.ones(2)}, width=4)
    hidden = jax.random.normal(jax.random.key(0), (2, 3, 4))
    np.testing.assert_array_equal(values.predict(critic, hidden), 0.0)
    by_critic, by_hidden = jax.grad(lambda c, h: jnp.sum(values.predict(c, h)), (0, 1))(critic, hidden)
    np.testing.assert_allclose(by_critic.value_weight, hidden.sum((0, 1)), rtol=1e-5)
    assert by_critic.value_bias == 6
    np.testing.assert_array_equal(by_hidden, 0.0)


def test_the_actor_is_found_with_and_without_a_critic():
    actor = {"a": jnp.ones(2)}
    assert values.actor_of(values.with_critic(actor, width=4)) is actor
    assert values.actor_of(actor) is actor
