"""Routing by hand, the two ways of running experts against each other, and programs for every platform."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import experts
from cudal1_jax.policy.config import Experts

EIGHT = Experts(count=8, active=3, mlp_width=12, normalised=True)


@pytest.fixture
def weights():
    rng = np.random.default_rng(0)
    shapes = {"router": (6, 8), "expert_gate": (8, 6, 12), "expert_up": (8, 6, 12), "expert_down": (8, 12, 6)}
    return {name: jnp.asarray(rng.standard_normal(shape), jnp.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("tokens", [1, 5])
def test_both_ways_of_running_experts_agree(weights, tokens):
    x = jnp.asarray(np.random.default_rng(1).standard_normal((tokens, 6)), jnp.float32)
    routed = {name: w for name, w in weights.items() if name != "router"}
    chosen, share = experts.route(EIGHT, weights, x)

    @jax.jit
    def both(routed, share):
        def of(way):
            return jax.value_and_grad(lambda *args: jnp.sum(way(args[0], x, chosen, args[1]) ** 2), (0, 1))

        return of(experts.grouped)(routed, share), of(experts.one_by_one)(routed, share)

    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4), *both(routed, share))


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        ([0.5, 0, 0, 0, 0, 0, 0, 0], [0, 7]),  # lifts expert 0 above all, and its group to the best two
        ([0, 0, 0, 0, 1.0, -9.0, 0, 0], [7, 6]),  # without groups: 4 and 7, but 5 keeps the group of 4 out
        ([0, 0, 0, 0, 0, 0, 0, 0], [7, 6]),
    ],
)
def test_a_token_goes_to_the_best_experts_of_the_best_groups(bias, expected):
    four = Experts(8, 2, mlp_width=12, normalised=False, gate="sigmoid", scale=2.0, groups=4, active_groups=2)
    logits = jnp.asarray([[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]])
    chosen, share = experts.route(four, {"router": logits, "router_bias": jnp.asarray(bias)}, jnp.ones((1, 1)))
    assert chosen.tolist() == [expected]
    np.testing.assert_allclose(share, [[2 / (1 + np.exp(-0.1 * number)) for number in expected]], rtol=1e-6)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_experts_are_lowered_for_every_platform(weights, platform):
    def loss(weights, x):
        return jnp.sum(experts.mixed(EIGHT, weights, x))

    exported = jax.export.export(jax.jit(jax.grad(loss)), platforms=[platform])(weights, jnp.ones((5, 6)))
    assert exported.platforms == (platform,)
    assert len(exported.out_avals) == len(weights)


@pytest.mark.parametrize("change", [{"active": 9}, {"groups": 3}, {"groups": 4, "active_groups": 5}])
def test_impossible_mixtures_are_refused(change):
    with pytest.raises(ValueError, match="experts cannot"):
        Experts(**({"count": 8, "active": 3, "mlp_width": 12, "normalised": True} | change))
