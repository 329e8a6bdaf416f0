"""Rollouts of a toy model: log-probs, determinism, stops, truncation and progress."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import decoder
from cudal1_jax.rollout import chunk, sampler, truncation
from cudal1_jax.rollout.chunk import CHUNK
from cudal1_jax.rollout.options import SamplingOptions

KEY = jax.random.key(11)
PROMPTS = ([5, 6, 7], [200, 3, 150, 9, 44, 8])
FOUR = (*PROMPTS, [31, 7, 90, 12, 12], [17])
PLAIN = SamplingOptions(max_new_tokens=12)
SHAPED = SamplingOptions(temperature=0.7, top_k=40, top_p=0.95, min_p=0.01, max_new_tokens=12)
STOPPING = SamplingOptions(max_new_tokens=2 * CHUNK + 5, stop_ids=tuple(range(0, 300, 50)))
FIVE_SLOTS = dataclasses.replace(STOPPING, slots=5)


def rows_of(rollout, prompts, group):
    """Every row as prompt + completion, padded, and where its completion begins."""
    rows = np.zeros((len(rollout.tokens), max(map(len, prompts)) + rollout.tokens.shape[1]), np.int32)
    starts = []
    for b, tokens in enumerate(rollout.tokens):
        prompt = prompts[b // group]
        rows[b, : len(prompt) + len(tokens)] = [*prompt, *tokens]
        starts.append(len(prompt))
    return rows, starts


def full_logits(config, params, rollout, prompts, group):
    """Logits [B, T, V] that predict each completion token, from one forward pass."""
    rows, starts = rows_of(rollout, prompts, group)
    run = jax.jit(lambda tokens: decoder.logits(config, params, decoder.forward(config, params, tokens)))
    everything = np.asarray(run(rows))
    T = rollout.tokens.shape[1]
    return np.stack([everything[b, start - 1 : start - 1 + T] for b, start in enumerate(starts)])


def logprobs_of(logits, tokens):
    return np.take_along_axis(np.asarray(jax.nn.log_softmax(logits, axis=-1)), tokens[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize("options", [PLAIN, SHAPED], ids=["plain", "shaped"])
def test_logprobs_equal_those_of_a_full_forward_pass(config, params, options):
    rollout = sampler.sample(config, params, PROMPTS, 3, KEY, options)
    assert rollout.tokens.shape == rollout.logprobs.shape == (6, 12)
    logits = full_logits(config, params, rollout, PROMPTS, 3)
    flat = jnp.asarray(logits.reshape(-1, config.vocabulary))
    shaped = np.asarray(truncation.allowed(flat, options)).reshape(logits.shape)
    np.testing.assert_allclose(rollout.logprobs, logprobs_of(shaped, rollout.tokens), atol=1e-4)


def test_temperature_zero_takes_the_likeliest_token(config, params):
    greedy = sampler.sample(config, params, PROMPTS, 1, KEY, SamplingOptions(temperature=0, max_new_tokens=12))
    logits = full_logits(config, params, greedy, PROMPTS, 1)
    np.testing.assert_array_equal(greedy.tokens, logits.argmax(-1))
    assert not np.any(greedy.logprobs)


def test_a_row_does_not_depend_on_the_batch_it_is_in(config, params):
    together = sampler.sample(config, params, PROMPTS, 3, KEY, PLAIN)
    swapped = sampler.sample(config, params, PROMPTS[::-1], 3, KEY, PLAIN, prompt_numbers=[1, 0])
    np.testing.assert_array_equal(swapped.tokens, np.roll(together.tokens, 3, axis=0))
    last = sampler.sample(config, params, PROMPTS[1:], 1, KEY, PLAIN, prompt_numbers=[1], first_sample=2)
    np.testing.assert_array_equal(last.tokens[0], together.tokens[5])


def test_rows_differ_by_key_prompt_number_and_sample_number(config, params):
    same = [PROMPTS[0], PROMPTS[0]]
    rows = sampler.sample(config, params, same, 3, KEY, PLAIN).tokens
    other = sampler.sample(config, params, same, 3, jax.random.key(12), PLAIN).tokens
    assert len({tuple(row) for row in (*rows, *other)}) == 12


def test_a_completion_ends_with_its_first_stop_token(config, params):
    rollout = sampler.sample(config, params, PROMPTS, 4, KEY, STOPPING)
    free = sampler.sample(config, params, PROMPTS, 4, KEY, dataclasses.replace(STOPPING, stop_ids=()))
    assert rollout.finished.any()
    for b in range(8):
        n = rollout.lengths[b]
        stops = np.isin(free.tokens[b], STOPPING.stop_ids)
        assert rollout.finished[b] == stops.any()
        assert n == (stops.argmax() + 1 if stops.any() else STOPPING.max_new_tokens)
        np.testing.assert_array_equal(rollout.tokens[b, :n], free.tokens[b, :n])
        assert not np.any(rollout.tokens[b, n:])
        assert not np.any(rollout.logprobs[b, n:])


def test_a_cut_completion_is_unfinished(config, params):
    rollout = sampler.sample(config, params, PROMPTS, 2, KEY, dataclasses.replace(PLAIN, stop_ids=(9999,)))
    assert not rollout.finished.any()
    assert rollout.lengths.tolist() == [12] * 4


@pytest.fixture(scope="module")
def five_slots(config, params):
    """Twelve rows of four prompts through five slots; the cache's ring has three blocks."""
    return sampler.sample(config, params, FOUR, 3, KEY, FIVE_SLOTS)


def test_rows_are_the_same_however_few_slots_they_pass_through(config, params, five_slots):
    at_once = sampler.sample(config, params, FOUR, 3, KEY, dataclasses.replace(FIVE_SLOTS, slots=12))
    np.testing.assert_array_equal(five_slots.tokens, at_once.tokens)
    np.testing.assert_array_equal(five_slots.lengths, at_once.lengths)
    np.testing.assert_array_equal(five_slots.finished, at_once.finished)
    np.testing.assert_allclose(five_slots.logprobs, at_once.logprobs, atol=1e-5)
    chunks = -(-at_once.lengths // CHUNK)
    assert set(chunks.tolist()) == {1, 2, 3}  # so that rows of every age were beside one another


def test_rows_are_the_same_in_any_order(config, params, five_slots):
    compiled = chunk.prefill._cache_size(), chunk.run._cache_size()
    back = sampler.sample(config, params, FOUR[::-1], 3, KEY, FIVE_SLOTS, prompt_numbers=[3, 2, 1, 0])
    bits = jax.__version_info__ < (0, 11)  # later compilers round the rows of a product in different ways
    for seen, expected, gap in (
        (back.tokens, five_slots.tokens, 0),
        (back.logprobs, five_slots.logprobs, 0 if bits else 2e-6),
    ):
        np.testing.assert_allclose(seen.reshape(4, 3, -1)[::-1], expected.reshape(4, 3, -1), rtol=0, atol=gap)
    assert (chunk.prefill._cache_size(), chunk.run._cache_size()) == compiled  # other rows in slots, same programs


def test_progress_is_told_after_every_chunk_and_ends_with_the_last_row(config, params):
    seen: list[sampler.Progress] = []
    rollout = sampler.sample(config, params, PROMPTS, 4, KEY, STOPPING, progress=seen.append)
    for number, at in enumerate(seen):
        drawn = np.minimum(rollout.lengths, (number + 1) * CHUNK)
        ended = rollout.lengths <= (number + 1) * CHUNK
        assert at.tokens == drawn.sum()
        assert at.settled == np.where(ended, STOPPING.max_new_tokens, drawn).sum()
        assert (at.finished, at.rows) == (ended.sum(), 8)
    assert len(seen) == -(-int(rollout.lengths.max()) // CHUNK) > 1
    assert seen[-1].settled == 8 * STOPPING.max_new_tokens


def test_progress_of_rows_that_wait_never_goes_back(config, params):
    seen: list[sampler.Progress] = []
    rollout = sampler.sample(config, params, FOUR, 3, KEY, FIVE_SLOTS, progress=seen.append)
    assert all(early.settled < late.settled for early, late in itertools.pairwise(seen))
    assert (seen[-1].tokens, seen[-1].finished) == (rollout.lengths.sum(), 12)
    assert seen[-1].settled == 12 * STOPPING.max_new_tokens


@pytest.mark.parametrize(
    "options",
    [
        SamplingOptions(slots=4000, max_new_tokens=1),
        SamplingOptions(slots=4000, max_new_tokens=1, temperature=2.0),
        SamplingOptions(slots=4000, max_new_tokens=1, top_k=20),
        SamplingOptions(slots=4000, max_new_tokens=1, top_p=0.6),
        SamplingOptions(slots=4000, max_new_tokens=1, min_p=0.2),
    ],
    ids=["plain", "hot", "top_k", "top_p", "min_p"],
)
def test_frequencies_are_the_distribution_asked_for(config, params, options):
    draws = 4000
    rollout = sampler.sample(config, params, PROMPTS[:1], draws, KEY, options)
    logits = decoder.logits(config, params, decoder.forward(config, params, jnp.asarray(PROMPTS[:1])))[0, -1]
    wide = np.asarray(logits, np.float64) / options.temperature
    share = np.exp(wide - wide.max())
    order = np.argsort(-share)
    if options.top_k:
        share[order[options.top_k :]] = 0
    if options.top_p < 1:
        share[order[np.searchsorted(np.cumsum(share[order]) / share.sum(), options.top_p) + 1 :]] = 0
    share[share < options.min_p * share.max()] = 0
    expected = draws * share / share.sum()
    counts = np.bincount(rollout.tokens[:, 0], minlength=config.vocabulary)
    assert not np.any(counts[share == 0])
    common = expected >= 5
    rare = (counts[~common].sum() - expected[~common].sum()) ** 2 / max(expected[~common].sum(), 1)
    chi_square = ((counts - expected)[common] ** 2 / expected[common]).sum() + rare
    degrees = common.sum()
    assert chi_square < degrees + 4 * np.sqrt(2 * degrees) + 4


@pytest.mark.parametrize(("length", "padded"), [(1, 128), (128, 128), (129, 256)])
def test_prompts_are_padded_to_whole_buckets(length, padded):
    assert sampler.pad_prompt([7] * length, bucket=128).tolist() == [7] * length + [0] * (padded - length)


@pytest.mark.parametrize(
    ("prompts", "group", "message"),
    [
        ([], 1, "no prompts"),
        ([[1], []], 1, "prompt 1 has 0 tokens; 1 to 500 fit"),
        ([[1] * 501], 1, "prompt 0 has 501 tokens; 1 to 500 fit"),
        ([[1]], 0, "group must be at least 1"),
    ],
)
def test_impossible_requests_are_refused(config, params, prompts, group, message):
    with pytest.raises(ValueError, match=message):
        sampler.sample(config, params, prompts, group, KEY, PLAIN)


def test_prompt_numbers_are_one_per_prompt(config, params):
    with pytest.raises(ValueError, match="2 prompts but 1 prompt_numbers"):
        sampler.sample(config, params, PROMPTS, 1, KEY, PLAIN, prompt_numbers=[4])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("top_k", 0),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", -1.0),
        ("max_new_tokens", 0),
        ("slots", 0),
    ],
)
def test_impossible_options_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be .*not {value}"):
        SamplingOptions(**{field: value})
