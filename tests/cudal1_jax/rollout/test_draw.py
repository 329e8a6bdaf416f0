"""Inverse sampling: the token is where the cumulative probability passes the number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.rollout import draw
from cudal1_jax.rollout.truncation import EXCLUDED

invert = jax.jit(draw.invert)


@pytest.mark.parametrize("V", [1, 2, draw.SPAN - 1, draw.SPAN, draw.SPAN + 1, 5 * draw.SPAN + 7])
def test_the_token_is_where_the_cumulative_probability_passes(V):
    rng = np.random.default_rng(V)
    logits = rng.normal(0, 2, (64, V)).astype(np.float32)
    uniform = rng.random(64).astype(np.float32)
    tokens = np.asarray(invert(logits, uniform))
    weights = np.exp(logits.astype(np.float64))
    upper = np.cumsum(weights / weights.sum(-1, keepdims=True), axis=-1)
    row = np.arange(64)
    below = np.where(tokens > 0, upper[row, tokens - 1], 0)
    assert np.all(below <= uniform + 1e-6)
    assert np.all(uniform <= upper[row, tokens] + 1e-6)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-24])
@pytest.mark.parametrize("allowed", [0, 3, 255, 256, 599])
def test_an_excluded_token_is_never_drawn(uniform, allowed):
    logits = np.full((1, 600), EXCLUDED, np.float32)
    logits[0, allowed] = -50.0
    assert int(invert(logits, np.full(1, uniform, np.float32))[0]) == allowed


def test_edges_fall_on_tokens_with_weight():
    logits = np.full((1, 600), EXCLUDED, np.float32)
    logits[0, [2, 300]] = 0.0
    assert [int(invert(logits, np.full(1, u, np.float32))[0]) for u in (0.0, 0.4999, 0.5001, 1 - 2**-24)] == [
        2,
        2,
        300,
        300,
    ]


def test_a_row_s_number_depends_on_its_key_and_the_position_alone():
    keys = jax.random.split(jax.random.key(0), 5)
    positions = jnp.asarray([7, 0, 3, 7, 1])
    together = draw.uniforms(keys, positions)
    np.testing.assert_array_equal(draw.uniforms(keys[3:4], positions[3:4]), together[3:4])
    assert len(set(np.asarray(together).tolist())) == 5
    assert np.all(np.asarray(draw.uniforms(keys, positions + 1)) != np.asarray(together))


def test_numbers_fill_the_unit_interval_evenly():
    numbers = np.asarray(draw.uniforms(jax.random.split(jax.random.key(1), 4000), jnp.zeros(4000, jnp.int32)))
    counts = np.histogram(numbers, bins=10, range=(0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 27.9  # chi-square, 9 degrees of freedom, 0.1 %
