"""Packing: rows give the loss and gradient of padded examples, nothing is lost, and the iterator resumes exactly."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import batch, objectives, packing, step
from cudal1_jax.learn.packing import Tokens


def examples(count: int, longest: int = 20) -> list[Tokens]:
    draw = np.random.default_rng(count)
    return [
        Tokens(
            prompt=tuple(draw.integers(0, 50, draw.integers(1, longest // 2)).tolist()),
            completion=tuple(draw.integers(0, 50, draw.integers(1, longest // 2)).tolist()),
        )
        for _ in range(count)
    ]


def test_packed_rows_have_the_loss_and_gradient_of_padded_rows(toy):
    data = examples(9)
    goal = objectives.cross_entropy(toy.config, chunk=16)
    padded = [packing.features(example) for example in data]

    def row(name, example):
        return np.pad(example[name], (0, 24 - len(example[name])))

    alone = batch.PackedRows(
        tokens=jnp.stack([row("tokens", x) for x in padded])[None, None],
        targets=jnp.stack([row("targets", x) for x in padded])[None, None],
        mask=jnp.stack([row("mask", x) for x in padded])[None, None],
        positions=jnp.broadcast_to(jnp.arange(24), (1, 1, 9, 24)),
        segment_ids=jnp.ones((1, 1, 9, 24), jnp.int32),
    )
    (packed,) = packing.packed(data, row_tokens=64, rows=4, passes=1, seed=3, drop_remainder=False)
    assert packed["tokens_segment_ids"].max() > 1
    together = packing.to_rows(packed, rows=4, micro_batches=2)

    gradient = jax.jit(lambda a, rows: step.accumulate(goal, a, toy.params, (), rows))
    ours, expected = gradient(toy.adapter, together), gradient(toy.adapter, alone)
    assert ours[1]["loss"].denominator == sum(len(example.completion) for example in data)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5), ours, expected)


def test_segments_do_not_see_each_other(toy):
    data = [Tokens((1, 2, 3), (4, 5)), Tokens((6, 7), (8, 9, 10))]
    goal = objectives.cross_entropy(toy.config, chunk=16)
    (rows,) = packing.every_row(data, row_tokens=16, rows=1)
    second = rows.segment_ids == 2
    changed = batch.PackedRows(
        tokens=jnp.where(rows.segment_ids == 1, (rows.tokens + 11) % 50, rows.tokens),
        targets=rows.targets,
        mask=rows.mask * second,
        positions=rows.positions,
        segment_ids=rows.segment_ids,
    )
    evaluate = step.make_evaluation(goal)
    original = batch.PackedRows(rows.tokens, rows.targets, rows.mask * second, rows.positions, rows.segment_ids)
    before = evaluate(toy.adapter, toy.params, (), original)["loss"].sum
    after = evaluate(toy.adapter, toy.params, (), changed)["loss"].sum
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_every_example_is_there_once_a_pass():
    data = examples(40)
    seen = sorted(
        tuple(row[segments == segment].tolist())
        for rows in packing.packed(data, row_tokens=32, rows=3, passes=2, seed=0, drop_remainder=False)
        for row, segments in zip(rows["tokens"], rows["tokens_segment_ids"], strict=True)
        for segment in range(1, segments.max() + 1)
    )
    assert seen == sorted(2 * [(example.prompt + example.completion)[:-1] for example in data])


def test_the_iterator_goes_on_exactly_from_a_state_in_json():
    data = examples(60)

    def fresh():
        return packing.packed(data, row_tokens=32, rows=2, passes=3, seed=5)

    straight = [rows["tokens"].tolist() for rows in fresh()]
    iterator = fresh()
    for _ in packing.take(iterator, 7):
        pass
    state = json.loads(json.dumps(iterator.get_state()))
    resumed = fresh()
    resumed.set_state(state)
    assert [rows["tokens"].tolist() for rows in resumed] == straight[7:]


def test_take_leaves_the_next_batch_where_it_is():
    numbers = iter(range(10))
    assert list(packing.take(numbers, 3)) == [0, 1, 2]
    assert next(numbers) == 3


@pytest.mark.parametrize(
    ("prompt", "completion"), [((1,), ()), ((), (1,)), ((1,) * 30, (2,) * 4)], ids=["no answer", "no request", "long"]
)
def test_what_cannot_be_packed_is_refused(prompt, completion):
    assert not packing.fits(Tokens(prompt, completion), 32)
    with pytest.raises(ValueError, match="in a row of 32 tokens"):
        packing.packed([Tokens(prompt, completion)], row_tokens=32, rows=1, passes=1, seed=0)


def test_an_example_that_just_fits_is_taken():
    assert packing.fits(Tokens((1,) * 30, (2,) * 3), 32)  # 33 tokens are 32 inputs and 32 targets


def test_no_examples_and_uneven_micro_batches_are_refused():
    with pytest.raises(ValueError, match="there must be examples"):
        packing.packed([], row_tokens=32, rows=1, passes=1, seed=0)
    with pytest.raises(ValueError, match="3 rows cannot be split into 2"):
        packing.to_rows({}, rows=3, micro_batches=2)


def test_batches_are_padded_to_their_bucket_and_lists_must_belong_together():
    prompts = batch.prompts([[5], [6, 7, 8]], bucket=4)
    assert prompts.tokens.tolist() == [[5, 0, 0, 0], [6, 7, 8, 0]]
    assert prompts.lengths.tolist() == [1, 3]
    rows = batch.completions([[1], []], advantages=[1.0, -1.0], sampler_logprobs=[[-0.5], []], bucket=2)
    assert rows.mask.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="each of 2 completions needs"):
        batch.completions([[1], [2]], advantages=[1.0, 1.0], sampler_logprobs=[[-0.5], []], bucket=2)
