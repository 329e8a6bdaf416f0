"""Every rule against its definition by sorting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.rollout import truncation

top_k = jax.jit(truncation.top_k, static_argnums=1)
top_p = jax.jit(truncation.top_p, static_argnums=1)


def rows(V: int) -> np.ndarray:
    rng = np.random.default_rng(V)
    return np.concatenate([rng.normal(0, s, (2, V)) for s in (0.01, 1, 8)]).astype(np.float32)


def kept(logits) -> np.ndarray:
    return np.asarray(logits) > truncation.EXCLUDED / 2


def probabilities(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("k", [1, 2, 30, 99, 100, 1000])
def test_top_k_keeps_the_k_largest(k):
    logits = rows(100)
    expected = np.argsort(np.argsort(-logits)) < k
    np.testing.assert_array_equal(kept(top_k(logits, k)), expected)


@pytest.mark.parametrize("mass", [1e-6, 0.1, 0.5, 0.9, 0.999])
def test_top_p_keeps_the_smallest_set_with_the_mass(mass):
    logits = rows(100)
    for row, seen in zip(probabilities(logits), kept(top_p(logits, mass)), strict=True):
        order = np.argsort(-row)
        count = int(np.searchsorted(np.cumsum(row[order]), mass)) + 1
        assert set(np.flatnonzero(seen)) == set(order[:count])


@pytest.mark.parametrize("fraction", [1e-4, 0.1, 0.7, 1.0])
def test_min_p_keeps_what_is_near_the_likeliest(fraction):
    logits = rows(100)
    share = probabilities(logits)
    expected = share >= fraction * share.max(-1, keepdims=True) * (1 - 1e-6)
    np.testing.assert_array_equal(kept(truncation.min_p(jnp.asarray(logits), fraction)), expected)


def test_ties_with_the_threshold_are_kept():
    logits = jnp.asarray([[3.0, 1.0, 3.0, 2.0, 2.0]])
    assert kept(top_k(logits, 1)).tolist() == [[True, False, True, False, False]]
    assert kept(top_k(logits, 3)).tolist() == [[True, False, True, True, True]]
    assert kept(top_p(logits, 0.4)).tolist() == [[True, False, True, False, False]]


def test_thresholds_are_found_among_negative_and_mixed_logits():
    # ordered as raw bits, negative numbers would come in reverse: the kept one would be -4
    assert kept(top_k(jnp.asarray([[-1.0, -2.0, -4.0]]), 1)).tolist() == [[True, False, False]]
    assert kept(top_k(jnp.asarray([[-1.0, 0.0, 5.0]]), 2)).tolist() == [[False, True, True]]


def test_kept_logits_are_unchanged():
    logits = jnp.asarray(rows(100))
    for truncated in (top_k(logits, 5), top_p(logits, 0.5), truncation.min_p(logits, 0.2)):
        np.testing.assert_array_equal(np.where(kept(truncated), truncated, logits), logits)


def test_rules_compose_without_letting_an_excluded_token_back():
    logits = jnp.asarray(rows(100))
    first = top_k(logits, 3)
    assert kept(top_p(first, 0.99)).sum(-1).max() <= 3
    assert not np.any(kept(top_p(first, 0.99)) & ~kept(first))
