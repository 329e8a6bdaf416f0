"""Log-probs: chunks change nothing, gradients are those of plain softmax, and a shared prompt equals a repeated one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import logprobs
from cudal1_jax.policy import decoder

HIDDEN = jax.random.normal(jax.random.key(0), (3, 7, 8))
TABLE = jax.random.normal(jax.random.key(1), (11, 8))
TARGETS = jax.random.randint(jax.random.key(2), (3, 7), 0, 11)
MASK = (jax.random.uniform(jax.random.key(3), (3, 7)) < 0.5).astype(jnp.float32)


def plain(hidden, table, temperature=1.0):
    logprobs = jax.nn.log_softmax(hidden @ table.T / temperature)
    chosen = jnp.take_along_axis(logprobs, TARGETS[..., None], axis=-1)[..., 0]
    return chosen * MASK, -jnp.sum(jnp.exp(logprobs) * logprobs, axis=-1) * MASK


def mixed(scores):
    """A number in which every score counts differently."""
    return sum(jnp.sum(jnp.sin(found) * weight) for found, weight in zip(scores, (1.0, 0.7), strict=True))


def test_two_words_by_hand():
    # logits 2 and 0 at temperature 2: log(e / (e + 1)) = -0.313262; without the temperature it would be -0.126928
    hidden, table = jnp.ones((1, 1, 1)), jnp.array([[2.0], [0.0]])
    found = logprobs.token_scores(hidden, table, jnp.zeros((1, 1), jnp.int32), jnp.ones((1, 1)), temperature=2.0)
    np.testing.assert_allclose(found.logprobs, [[-0.313262]], rtol=1e-5)
    # p = 0.731059 and 0.268941: -(0.731059 ln 0.731059 + 0.268941 ln 0.268941)
    np.testing.assert_allclose(found.entropy, [[0.582203]], rtol=1e-5)


@pytest.mark.parametrize("chunk", [1, 4, 21, 64])
@pytest.mark.parametrize("trained", [False, True])
def test_value_and_gradient_are_those_of_plain_softmax_whatever_the_chunk(chunk, trained):
    def ours(hidden, table):
        return mixed(logprobs.token_scores(
            hidden, table, TARGETS, MASK, temperature=0.7, chunk=chunk, table_is_trained=trained, entropy_gradient=True
        ))  # fmt: skip

    arguments = (0, 1) if trained else (0,)
    value, gradients = jax.jit(jax.value_and_grad(ours, arguments))(HIDDEN, TABLE)
    expected = jax.value_and_grad(lambda h, t: mixed(plain(h, t, 0.7)), arguments)(HIDDEN, TABLE)
    np.testing.assert_allclose(value, expected[0], rtol=1e-5)
    for found, wanted in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("trained", [False, True])
def test_entropy_has_no_gradient_unless_it_is_asked_for(trained):
    def entropy(hidden):
        return jnp.sum(logprobs.token_scores(hidden, TABLE, TARGETS, MASK, chunk=21, table_is_trained=trained).entropy)

    np.testing.assert_array_equal(jax.jit(jax.grad(entropy))(HIDDEN), 0.0)


@pytest.mark.parametrize("mask", [jnp.zeros((3, 7)), jnp.ones((3, 7))], ids=["none", "all"])
def test_positions_nobody_asks_for_are_zero_and_untouched(mask):
    def total(hidden):
        return jnp.sum(logprobs.token_scores(hidden, TABLE, TARGETS, mask, chunk=4).logprobs)

    value, gradient = jax.value_and_grad(total)(HIDDEN)
    assert (value == 0) == (mask.sum() == 0)
    np.testing.assert_array_equal((gradient != 0).any(axis=-1), mask > 0)


def test_chunks_without_a_wanted_position_are_skipped():
    # the loop's body must hold the product inside a branch and nowhere else
    program = jax.make_jaxpr(lambda h: logprobs.token_scores(h, TABLE, TARGETS, MASK, chunk=4))(HIDDEN)
    (loop,) = [equation for equation in program.eqns if equation.primitive.name == "scan"]
    body = loop.params["jaxpr"].jaxpr
    assert "dot_general" not in {equation.primitive.name for equation in body.eqns}
    assert "cond" in {equation.primitive.name for equation in body.eqns}


def test_a_shared_prompt_gives_the_scores_of_whole_sequences(toy):
    N, G, P, T = 2, 3, 6, 5
    prompts = jax.random.randint(jax.random.key(4), (N, P), 0, 50)
    lengths = jnp.array([6, 4])
    completions = jax.random.randint(jax.random.key(5), (N * G, T), 0, 50)
    weights = jax.random.normal(jax.random.key(6), (toy.config.width,))
    mask = (jnp.arange(T)[None] < jnp.array([5, 2, 1, 4, 0, 3])[:, None]).astype(jnp.float32)

    def shared(adapter):
        prefix, last = decoder.prefill(toy.config, toy.params, prompts, lengths, adapter=adapter)
        return logprobs.completion_scores(
            toy.config, toy.params, adapter, prefix, last, lengths, completions, mask,
            temperature=1.0, chunk=4, remat="none", critic=lambda hidden: hidden @ weights,
        )  # fmt: skip

    starts = jnp.repeat(lengths, G)[:, None] + jnp.arange(T)[None]  # [B, T], where each completion's tokens lie
    rows = jnp.arange(N * G)[:, None]
    whole = jnp.pad(jnp.repeat(prompts, G, axis=0), [(0, 0), (0, T)]).at[rows, starts].set(completions)

    def repeated(adapter):
        hidden = decoder.forward(toy.config, toy.params, whole, adapter=adapter)
        scores = jax.nn.log_softmax(decoder.logits(toy.config, toy.params, hidden))
        entropy = -jnp.sum(jnp.exp(scores) * scores, axis=-1)
        before = starts - 1
        return (
            scores[rows, before, completions] * mask,
            entropy[rows, before] * mask,
            (hidden @ weights)[rows, before] * mask,
        )

    # their gradients agree because they are one function of the adapter; `test_step` compares those
    for found, wanted in zip(jax.jit(shared)(toy.adapter), jax.jit(repeated)(toy.adapter), strict=True):
        np.testing.assert_allclose(found, wanted, atol=5e-5)
