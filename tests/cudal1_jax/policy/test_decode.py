"""Decoding with a shared prompt and a cache against the full forward pass."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import decode, decoder

STEPS = decode.CACHE_BLOCK + 3  # past the first block of the cache


@functools.partial(jax.jit, static_argnums=0)
def decoded_hidden(config, params, prompts, lengths, completions):
    """Hidden states [B, T, D] after each completion token."""
    prefilled, _ = decoder.prefill(config, params, prompts, lengths, cache_size=prompts.shape[1] + 5)
    weights = decode.prepare(config, params)
    shared = decode.prompts(prefilled, lengths)
    rows, steps = completions.shape

    def step(cache, xs):
        hidden, cache = decode.step(config, weights, shared, cache, *xs)
        return cache, hidden

    cache = decode.empty_cache(config, rows, steps, params["embed"].dtype)
    return jax.lax.scan(step, cache, (completions.T, jnp.arange(steps)))[1].transpose(2, 0, 1)


@functools.partial(jax.jit, static_argnums=0)
def full_hidden(config, params, prompts, lengths, completions):
    prefix, _ = decoder.prefill(config, params, prompts, lengths)
    return decoder.forward_with_prefix(config, params, prefix, lengths, completions)


@pytest.mark.parametrize(("prompts", "group"), [(1, 4), (2, 3)])
def test_decoding_equals_the_full_forward_pass(config, params, prompts, group):
    rng = np.random.default_rng(5)
    lengths = jnp.asarray([13, 6][:prompts])
    tokens = jnp.asarray(rng.integers(0, config.vocabulary, (prompts, 13)), jnp.int32)
    completions = jnp.asarray(rng.integers(0, config.vocabulary, (prompts * group, STEPS)), jnp.int32)
    hidden = decoded_hidden(config, params, tokens, lengths, completions)
    np.testing.assert_allclose(hidden, full_hidden(config, params, tokens, lengths, completions), atol=5e-5)


def test_a_row_is_the_same_beside_other_rows(config, params):
    completions = jnp.asarray(np.random.default_rng(6).integers(0, config.vocabulary, (5, 4)), jnp.int32)
    prompt, length = jnp.asarray([[3, 1, 4, 1]], jnp.int32), jnp.asarray([4])
    together = decoded_hidden(config, params, prompt, length, completions)
    alone = decoded_hidden(config, params, prompt, length, completions[2:3])
    np.testing.assert_allclose(together[2:3], alone, atol=1e-5)


def test_logits_equal_those_of_the_decoder(config, params):
    hidden = jax.random.normal(jax.random.key(0), (3, config.width))
    untied = dataclasses.replace(config, tied_embeddings=False)
    for shape, weights in ((config, params), (untied, params | {"unembed": params["embed"][::-1]})):
        prepared = decode.prepare(shape, weights)
        expected = decoder.logits(shape, weights, hidden)
        np.testing.assert_allclose(decode.logits(prepared, hidden.T), expected, rtol=1e-5, atol=1e-5)


def test_bfloat16_weights_decode_in_bfloat16(config, params):
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    prompt, length = jnp.asarray([[3, 1, 4, 1]], jnp.int32), jnp.asarray([4])
    completions = jnp.asarray([[1, 2, 3, 4]], jnp.int32)
    hidden = decoded_hidden(config, half, prompt, length, completions)
    assert hidden.dtype == jnp.bfloat16
    exact = decoded_hidden(config, params, prompt, length, completions)
    assert float(jnp.abs(hidden.astype(jnp.float32) - exact).max()) < 0.05 * float(jnp.abs(exact).max())


@pytest.mark.parametrize(("tokens", "size"), [(1, 64), (64, 64), (65, 128), (512, 512)])
def test_the_cache_is_whole_blocks(config, tokens, size):
    cache = decode.empty_cache(config, rows=3, tokens=tokens, dtype=jnp.float32)
    assert len(cache) == config.layers
    assert {x.shape for x in jax.tree.leaves(cache)} == {(3, config.key_heads, size, config.head_size)}
