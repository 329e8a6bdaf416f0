"""Eight-bit matrices against the matrices that they stand for."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import decode
from cudal1_jax.rollout import int8, sampler
from cudal1_jax.rollout.options import SamplingOptions


def matrix(rows, columns, seed=0):
    """Outputs of very different sizes, so that one scale for all of them would lose the small ones."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-3, 4, (rows, 1))).astype(np.float32)


@pytest.mark.parametrize(("rows", "columns", "batch"), [(1, 1, 1), (5, 7, 3), (96, 64, 8)])
def test_a_product_loses_no_more_than_half_a_step_of_each_factor(rows, columns, batch):
    w, x = matrix(rows, columns), matrix(columns, batch, seed=1)
    seen = int8.Matrix(*int8._rounded(jnp.asarray(w), axis=1)) @ jnp.asarray(x)
    w_step, x_step = np.abs(w).max(1, keepdims=True) / 127, np.abs(x).max(0, keepdims=True) / 127
    bound = (w_step / 2) * np.abs(x).sum(0) + (x_step / 2) * np.abs(w).sum(1, keepdims=True) + columns * w_step * x_step
    assert np.all(np.abs(np.asarray(seen) - w.astype(np.float64) @ x) <= bound * (1 + 1e-5))


def test_values_fill_the_range_of_each_output():
    w = matrix(6, 50)
    rounded = int8.Matrix(*int8._rounded(jnp.asarray(w), axis=1))
    assert np.abs(np.asarray(rounded.values)).max(1).tolist() == [127] * 6
    restored = np.asarray(rounded.values).astype(np.float32) * np.asarray(rounded.scale)
    assert np.all(np.abs(restored - w) <= np.abs(w).max(1, keepdims=True) / 127 * 0.501)


def test_zeros_stay_zeros():
    rounded = int8.Matrix(*int8._rounded(jnp.zeros((3, 4)), axis=1))
    np.testing.assert_array_equal(rounded @ jnp.ones((4, 2)), np.zeros((3, 2)))
    np.testing.assert_array_equal(rounded @ jnp.zeros((4, 2)), np.zeros((3, 2)))


def test_a_layer_s_matrices_and_nothing_else_are_quantised(config, params):
    weights = decode.prepare(config, params)
    small = int8.quantised(weights)
    assert small.embed is weights.embed
    for before, after in zip(weights.layers, small.layers, strict=True):
        assert {name for name, x in after.items() if isinstance(x, int8.Matrix)} == set(int8.MATRICES)
        np.testing.assert_array_equal(after["attn_norm"], before["attn_norm"])


def test_recorded_logprobs_are_those_of_the_quantised_policy_near_the_exact_ones(config, params):
    options = SamplingOptions(max_new_tokens=4)
    exact = sampler.sample(config, params, [[5, 6, 7]], 16, jax.random.key(2), options)
    small = sampler.sample(config, params, [[5, 6, 7]], 16, jax.random.key(2), dataclasses.replace(options, int8=True))
    # the first token comes from the prefill, which is exact; later ones carry the rounding of what was fed back
    np.testing.assert_array_equal(small.tokens[:, 0], exact.tokens[:, 0])
    same = np.cumprod(small.tokens == exact.tokens, axis=1).astype(bool)
    assert same.mean() > 0.5
    gap = np.abs(small.logprobs - exact.logprobs)[same]
    assert 1e-4 < gap.max() < 0.5
