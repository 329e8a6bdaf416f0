"""Tiled attention equals plain softmax attention, in value and gradient, for every kind of visibility."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import attention, blockwise, fused
from cudal1_jax.policy.attention import KeyValues, Prefix
from cudal1_jax.policy.blockwise import Partial, Visible


def plain(q, k, v, visible):
    scores = jnp.einsum("nkmd,nksd->nkms", q, k)
    key = jnp.arange(k.shape[2])[None, None, None]
    seen = (key >= visible.first[:, None, :, None]) & (key <= visible.last[:, None, :, None])
    scores = jnp.where(jnp.broadcast_to(seen, scores.shape), scores, -1e30)
    out = jnp.einsum("nkms,nksd->nkmd", jax.nn.softmax(scores), v)
    return out, jax.nn.logsumexp(scores, axis=-1)


def drawn(M, S, n=2, K=3, d=8):
    keys = jax.random.split(jax.random.key(M * 100 + S), 5)
    q, k, v = (jax.random.normal(key, (n, K, size, d)) for key, size in zip(keys, (M, S, S), strict=False))
    first = jax.random.randint(keys[3], (n, M), 0, S)
    last = jnp.minimum(first + jax.random.randint(keys[4], (n, M), 0, S), S - 1)
    return q, k, v, Visible(first, last)


@pytest.mark.parametrize(("M", "S", "tile"), [(1, 1, 4), (12, 7, 4), (7, 12, 4), (6, 5, 100)])
def test_tiles_give_the_value_and_gradient_of_plain_attention(M, S, tile):
    q, k, v, visible = drawn(M, S)

    def total(function):
        def of(q, k, v):  # the log-normaliser too must be differentiable: merging goes through it
            out, log_normaliser = function(q, k, v)
            return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.cos(log_normaliser))

        return jax.jit(jax.value_and_grad(of, argnums=(0, 1, 2)))(q, k, v)

    ours, gradients = total(lambda q, k, v: blockwise.attend(q, k, v, visible, tile))
    expected, expected_gradients = total(lambda q, k, v: plain(q, k, v, visible))
    np.testing.assert_allclose(ours, expected, rtol=1e-5)
    for ours, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(ours, expected, atol=2e-5)


def test_merging_halves_gives_the_whole():
    q, k, v, visible = drawn(6, 10)
    everything = Visible(jnp.zeros_like(visible.first), jnp.full_like(visible.last, 9))
    halves = [
        Partial(*plain(q, k[:, :, part], v[:, :, part], everything._replace(last=everything.last * 0 + 4)))
        for part in (slice(0, 5), slice(5, 10))
    ]
    np.testing.assert_allclose(blockwise.merge(*halves), plain(q, k, v, everything)[0], atol=1e-6)


@pytest.mark.parametrize("T", [1, 5, attention.BLOCK + 3])
@pytest.mark.parametrize("prefixed", [False, True])
def test_causal_attention_over_segments_and_a_shared_prefix(T, prefixed):
    B, N, H, K, d, P = 4, 2, 6, 3, 4, 9
    keys = jax.random.split(jax.random.key(T), 6)
    q = jax.random.normal(keys[0], (B, T, H, d))
    own = KeyValues(*(jax.random.normal(key, (B, K, T, d)) for key in keys[1:3]))
    shared = KeyValues(*(jax.random.normal(key, (N, K, P, d)) for key in keys[3:5]))
    lengths = jnp.array([9, 4])
    segments = None if prefixed else jnp.cumsum(jax.random.bernoulli(keys[5], 0.3, (B, T)), axis=1)

    ours = jax.jit(attention.causal)(q, own, segments, Prefix(shared, lengths) if prefixed else None)
    expected = jax.jit(plain_causal)(q, own, segments, Prefix(shared, lengths) if prefixed else None)
    np.testing.assert_allclose(ours, expected, atol=2e-6)


def plain_causal(q, own, segments, prefix):
    (B, T, H, d), K = q.shape, own.k.shape[1]
    mask = jnp.broadcast_to(jnp.tril(jnp.ones((T, T), bool)), (B, T, T))
    k, v = own
    if segments is not None:
        mask = mask & (segments[:, :, None] == segments[:, None, :])
    if prefix is not None:
        (N, _, P, _), lengths = prefix.keys.k.shape, prefix.lengths
        k, v = (
            jnp.concatenate([jnp.repeat(a, B // N, axis=0), b], axis=2) for a, b in zip(prefix.keys, own, strict=True)
        )
        valid = jnp.repeat(jnp.arange(P)[None] < lengths[:, None], B // N, axis=0)
        mask = jnp.concatenate([jnp.broadcast_to(valid[:, None], (B, T, P)), mask], axis=2)
    k, v = (jnp.repeat(x, H // K, axis=1) for x in (k, v))  # query head h uses key head h // (H / K)
    scores = jnp.einsum("bthd,bhsd->bhts", q, k) * d**-0.5
    weights = jax.nn.softmax(jnp.where(jnp.broadcast_to(mask[:, None], scores.shape), scores, -jnp.inf))
    return jnp.einsum("bhts,bhsd->bthd", weights, v)


def test_fused_attention_is_the_same_function():
    B, T, H, K, d = 2, 9, 4, 2, 8
    keys = jax.random.split(jax.random.key(9), 3)
    q = jax.random.normal(keys[0], (B, T, H, d))
    own = KeyValues(*(jax.random.normal(key, (B, K, T, d)) for key in keys[1:]))
    segments = jnp.array([[1, 1, 1, 2, 2, 2, 2, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 2]])
    ours = jax.jit(lambda q, own: fused.attend(q, own, fused.segment_bias(segments, jnp.float32)))(q, own)
    np.testing.assert_allclose(ours, jax.jit(attention.causal)(q, own, segments, None), atol=2e-6)
