"""The forward pass against a plain NumPy decoder, and the ways of running it against each other."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import decoder, parameters
from cudal1_jax.policy.attention import BLOCK

# compiled once per shape: called as they are, every call compiles its scan over layers anew
forward = jax.jit(decoder.forward, static_argnums=0, static_argnames="remat")


@functools.partial(jax.jit, static_argnums=0, static_argnames="remat")
def forward_shared(config, params, prompts, lengths, completions, adapter, remat="none"):
    """Hidden states that predict each token of the completions, every prompt's forward pass run once."""
    prefix, last = decoder.prefill(config, params, prompts, lengths, adapter=adapter, remat=remat)
    rest = decoder.forward_with_prefix(config, params, prefix, lengths, completions[:, :-1], adapter, remat)
    first = jnp.repeat(last, completions.shape[0] // prompts.shape[0], axis=0)
    return jnp.concatenate([first[:, None], rest], axis=1)


def tokens_of(shape: tuple[int, ...], config, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(0, config.vocabulary, shape), jnp.int32)


def numpy_hidden(config, params, tokens: np.ndarray) -> np.ndarray:
    """One sequence [T] in float64, one head and one query at a time; rotary pairs as complex numbers."""
    weights = {name: np.asarray(x, np.float64) for name, x in params.items()}
    T, d, half = len(tokens), config.head_size, config.head_size // 2
    turn = np.exp(1j * np.arange(T)[:, None] * config.rope_theta ** (-np.arange(half) / half))

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config.norm_epsilon) * weight

    def rotated(x):
        turned = (x[:, :half] + 1j * x[:, half:]) * turn
        return np.concatenate([turned.real, turned.imag], -1)

    x = weights["embed"][tokens]
    for layer in range(config.layers):
        w = {name: weights[name][layer] for name in parameters.of_stack(parameters.stacks(config)[0], weights)}
        y = norm(x, w["attn_norm"])
        q, k, v = y @ w["q"], y @ w["k"], y @ w["v"]
        heads = []
        for head in range(config.heads):
            shared = head // (config.heads // config.key_heads)
            qh = rotated(q[:, head * d : (head + 1) * d])
            kh, vh = rotated(k[:, shared * d : (shared + 1) * d]), v[:, shared * d : (shared + 1) * d]
            rows = []
            for t in range(T):
                scores = np.exp(kh[: t + 1] @ qh[t] / np.sqrt(d))
                rows.append(scores @ vh[: t + 1] / scores.sum())
            heads.append(np.stack(rows))
        x = x + np.concatenate(heads, -1) @ w["o"]
        y = norm(x, w["mlp_norm"])
        gate = y @ w["gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w["up"])) @ w["down"]
    return norm(x, weights["final_norm"])


@pytest.mark.parametrize("length", [1, BLOCK, BLOCK + 1])
def test_forward_equals_a_plain_numpy_decoder(config, params, length):
    tokens = tokens_of((1, length), config)
    hidden = forward(config, params, tokens)[0]
    np.testing.assert_allclose(hidden, numpy_hidden(config, params, np.asarray(tokens[0])), atol=5e-5)


def test_a_token_changes_nothing_before_it(config, params):
    tokens = tokens_of((1, 20), config)
    changed = tokens.at[0, 12].set((tokens[0, 12] + 1) % config.vocabulary)
    before, after = forward(config, params, tokens), forward(config, params, changed)
    np.testing.assert_array_equal(before[:, :12], after[:, :12])
    assert float(jnp.abs(before[:, 12:] - after[:, 12:]).min(axis=-1).max()) > 0


def test_padding_on_the_right_changes_nothing(config, params):
    tokens = tokens_of((2, 17), config)
    padded = jnp.pad(tokens, ((0, 0), (0, 15)))
    hidden = forward(config, params, padded)[:, :17]
    np.testing.assert_allclose(hidden, forward(config, params, tokens), atol=2e-5)


def test_packed_segments_equal_separate_sequences(config, params):
    first, second = tokens_of((1, 11), config, seed=1), tokens_of((1, 7), config, seed=2)
    positions = jnp.concatenate([jnp.arange(11), jnp.arange(7)])[None]
    segments = jnp.concatenate([jnp.ones(11, jnp.int32), jnp.full(7, 2, jnp.int32)])[None]
    packed = forward(config, params, jnp.concatenate([first, second], axis=1), positions, segments)
    np.testing.assert_allclose(packed[:, :11], forward(config, params, first), atol=2e-5)
    np.testing.assert_allclose(packed[:, 11:], forward(config, params, second), atol=2e-5)


def test_only_distances_between_positions_matter(config, params):
    tokens = tokens_of((1, 9), config)
    shifted = forward(config, params, tokens, positions=jnp.arange(9)[None] + 500)
    np.testing.assert_allclose(shifted, forward(config, params, tokens), atol=3e-4)


def test_untied_logits_use_their_own_table(config, params):
    untied = dataclasses.replace(config, tied_embeddings=False)
    both = params | {"unembed": 2 * params["embed"]}
    hidden = forward(config, params, tokens_of((1, 3), config))
    np.testing.assert_allclose(
        decoder.logits(untied, both, hidden), 2 * decoder.logits(config, params, hidden), rtol=1e-5
    )


PROMPT_LENGTHS = (19, 11)


def shared_and_plain(config, group: int):
    """A batch in both forms: completions after shared prompts, and every row as a padded sequence of its own."""
    prompts, completions = tokens_of((2, 19), config, seed=3), tokens_of((2 * group, 8), config, seed=4)
    rows = np.zeros((2 * group, 19 + 8), np.int32)
    for b in range(2 * group):
        length = PROMPT_LENGTHS[b // group]
        rows[b, : length + 8] = np.concatenate([prompts[b // group, :length], completions[b]])
    return prompts, jnp.asarray(PROMPT_LENGTHS), completions, jnp.asarray(rows)


def chosen_logprobs(config, params, hidden, completions):
    logprobs = jax.nn.log_softmax(decoder.logits(config, params, hidden), axis=-1)
    return jnp.take_along_axis(logprobs, completions[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize("group", [1, 3])
def test_shared_prompt_forward_equals_the_plain_one(config, params, adapter, group):
    prompts, lengths, completions, rows = shared_and_plain(config, group)
    hidden = forward_shared(config, params, prompts, lengths, completions, adapter)
    plain = forward(config, params, rows, adapter=adapter)
    for b in range(2 * group):
        start = PROMPT_LENGTHS[b // group] - 1
        np.testing.assert_allclose(hidden[b], plain[b, start : start + 8], atol=5e-5)


def test_shared_prompt_gradients_with_remat_equal_the_plain_ones_without(config, params, adapter):
    prompts, lengths, completions, rows = shared_and_plain(config, group=2)
    weights = jax.random.normal(jax.random.key(7), completions.shape)

    def shared_loss(params, adapter):
        hidden = forward_shared(config, params, prompts, lengths, completions, adapter, remat="layer")
        return jnp.sum(weights * chosen_logprobs(config, params, hidden, completions))

    def plain_loss(params, adapter):
        hidden = forward(config, params, rows, adapter=adapter)
        starts = [PROMPT_LENGTHS[b // 2] - 1 for b in range(4)]
        predicting = jnp.stack([hidden[b, start : start + 8] for b, start in enumerate(starts)])
        return jnp.sum(weights * chosen_logprobs(config, params, predicting, completions))

    shared = jax.jit(jax.grad(shared_loss, (0, 1)))(params, adapter)
    plain = jax.jit(jax.grad(plain_loss, (0, 1)))(params, adapter)
    for left, right in zip(jax.tree.leaves(shared), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(left, right, atol=2e-5 * float(jnp.abs(right).max()))


def test_a_cache_smaller_than_the_prompt_is_refused(config, params):
    with pytest.raises(ValueError, match=r"cache_size \(4\) is smaller than the prompts \(5 tokens\)"):
        jax.eval_shape(lambda: decoder.prefill(config, params, tokens_of((1, 5), config), jnp.array([5]), cache_size=4))


def test_rows_that_do_not_divide_by_prompts_are_refused(config, params):
    with pytest.raises(ValueError, match="3 rows cannot be shared evenly by 2 prompts"):
        decoder.forward_with_prefix(config, params, None, jnp.array([5, 5]), tokens_of((3, 4), config))
