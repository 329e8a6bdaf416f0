"""Correctness cases: each exposes what plain draws hide, and keeps shapes and dtypes."""

import dataclasses

import numpy as np
import pytest

from evaluator.judge import cases
from evaluator.judge.cases import TRANSFORMS, cases_of, inputs_for
from evaluator.tasks.arrays import draw
from evaluator.tasks.task import CASES, Array, Task


def task_of(*arrays, cases=None):
    return Task(id="t", name="t", family="chain", source="", sizes={"cpu": tuple(arrays)}, cases=cases)


PAIR = task_of(
    Array("x", (6, 33)),
    Array("w", (33,), init="normal(0,1)"),
    Array("gamma", (33,), init="constant(1)", parameter=True),
)


def test_a_task_can_name_the_cases_there_are():
    assert ("plain", *TRANSFORMS) == CASES


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (6, 33), (3, 0, 2), (2, 3, 5)])
def test_every_case_keeps_shape_and_type(case, shape):
    task = task_of(
        Array("labels", shape, dtype="int64", init="integers(0,10)"),
        Array("x", shape),
        Array("h", shape, dtype="float16"),
    )
    arrays = inputs_for(task, "cpu", case, seed=5)
    assert [(x.shape, str(x.dtype)) for x in arrays] == [(shape, "int64"), (shape, "float32"), (shape, "float16")]
    assert all(x.flags.c_contiguous for x in arrays)


@pytest.mark.parametrize("case", CASES)
def test_cases_are_functions_of_their_seed(case):
    once, twice, other = (inputs_for(PAIR, "cpu", case, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(once, twice, strict=True))
    assert not np.array_equal(once[0], other[0])


@pytest.mark.parametrize("case", sorted(TRANSFORMS))
def test_weights_of_one_do_not_stay_one(case):
    gamma = inputs_for(PAIR, "cpu", case, seed=3)[2]
    assert np.std(gamma) > 0.01  # a program that leaves out a weight of one would pass otherwise


def test_plain_inputs_are_the_task_s_own():
    assert np.all(inputs_for(PAIR, "cpu", "plain", seed=3)[2] == 1)


def test_negated_reaches_what_uniform_inputs_never_do():
    x, w, _ = inputs_for(PAIR, "cpu", "negated", seed=3)
    assert np.max(x) <= 0  # the task draws from [0, 1)
    assert 0.2 < np.mean(w > 0) < 0.8


def test_large_and_small_are_far_from_one():
    assert np.max(inputs_for(PAIR, "cpu", "large", seed=3)[0]) > 500
    assert np.max(inputs_for(PAIR, "cpu", "small", seed=3)[0]) < 1e-2


def nearest(x, bits):
    """Rounded to so many significant bits, ties away from zero."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.trunc(np.abs(fraction) * 2**bits + 0.5) * np.sign(fraction), exponent - bits)


@pytest.mark.parametrize("shape", [(), (6, 33)])
@pytest.mark.parametrize("bits", [8, 11])
def test_of_two_inputs_and_more_some_are_rounded_one_way(bits, shape):
    task = task_of(*(Array(name, shape) for name in "xyz"), Array("w", shape, parameter=True))
    large, small = (inputs_for(task, "cpu", case, seed=3) for case in ("large", "small"))
    coarse = 2.0**-bits
    for x, sign in ((large[0], -1), (small[1], -1), (small[2], 1)):
        error = sign * (nearest(np.abs(x), bits) - np.abs(x)) / np.abs(x)
        assert np.all(error > 0.3 * coarse)
        assert np.all(error < coarse)
    assert np.all(small[1] > 0)
    assert np.all(small[2] < 0)
    for x in (*large[1:], small[0], small[3]) if shape else ():
        error = nearest(np.abs(x), bits) - np.abs(x)
        assert abs(np.sum(np.sign(error))) < x.size / 2


def test_zeros_stay_zeros_where_inputs_are_rounded_one_way():
    task = task_of(Array("x", (4, 5)), Array("mask", (4, 5), init="constant(0)"))
    rounded = cases._show_rounding([np.ones((4, 5), np.float32), np.zeros((4, 5), np.float32)],
                                   task.arrays_at("cpu"), "small")  # fmt: skip
    assert not rounded[1].any()


def test_a_single_input_keeps_its_bits():
    x = inputs_for(task_of(Array("x", (600,)), Array("w", (600,), parameter=True)), "cpu", "large", seed=3)[0]
    assert len(np.unique(x.view(np.uint32) >> 8 & 0xFF)) > 100


def test_a_part_of_a_heavy_tailed_sum_is_not_the_whole():
    x = inputs_for(task_of(Array("x", (1, 4096))), "cpu", "heavy_tailed", seed=3)[0]
    halves = x[:, :2048].mean(), x.mean()
    assert abs(halves[0] / halves[1] - 1) > 0.02  # plain uniform: 0.6 % on average


def test_one_changed_stands_out_alone_and_one_sign_is_another():
    x = inputs_for(PAIR, "cpu", "one_changed", seed=3)[0]
    assert np.sum(np.abs(x) > 10 * np.median(np.abs(x))) == 1
    assert np.sum(x < 0) == 1  # the task draws from [0, 1)


def test_permuted_is_sorted_along_an_axis():
    x = inputs_for(task_of(Array("x", (64,))), "cpu", "permuted", seed=3)[0]
    steps = np.diff(x)
    assert np.all(steps >= 0) or np.all(steps <= 0)


@pytest.mark.parametrize("seed", range(6))
def test_of_a_large_array_a_slice_is_sorted_and_the_rest_stays(monkeypatch, seed):
    monkeypatch.setattr(cases, "SORTED", 1000)
    task = task_of(Array("x", (40, 100)))
    (x,), (before,) = inputs_for(task, "cpu", "permuted", seed=seed), draw(task, "cpu", seed, "permuted")
    rows, columns = (np.nonzero((x != before).any(axis=axis))[0] for axis in (1, 0))
    assert (len(rows), len(columns)) in {(10, 100), (40, 25)}
    changed = x[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert changed.size == 1000  # side by side
    steps = np.diff(changed, axis=1 if len(rows) == 10 else 0)
    assert np.all(steps >= 0) or np.all(steps <= 0)


def test_structured_rows_are_one_hot_or_constant():
    x = inputs_for(PAIR, "cpu", "structured", seed=3)[0]
    assert np.all(x[::2].sum(axis=1) == 1)
    assert np.all(np.sort(x[::2], axis=1)[:, -1] == 1)
    assert np.all(x[1::2] == 0.5)


def test_integers_need_more_bits_than_half_has():
    x, w, _ = inputs_for(PAIR, "cpu", "integers", seed=3)
    assert np.all(x == np.rint(x))
    with np.errstate(over="ignore"):
        assert np.any(x != x.astype(np.float16))
    assert np.max(np.abs(w)) <= 4


@pytest.mark.parametrize("shape", [(6, 33), (2, 5, 33), (1, 40), (40,)])
def test_every_other_row_of_integers_needs_nineteen_bits_in_one_element(shape):
    task = task_of(Array("x", shape))
    wide = []
    for seed in range(8):
        rows = np.abs(inputs_for(task, "cpu", "integers", seed=seed)[0].reshape(-1, shape[-1]))
        assert set(np.sum(rows >= 2**18, axis=1)) <= {0, 1}
        assert np.all(np.partition(rows[rows.max(axis=1) >= 2**18], -2, axis=1)[:, :-1] <= 1)
        assert rows.sum(axis=1).max() * 4 < 2**24  # with weights up to 4 every sum is exact
        wide.append(np.mean(rows.max(axis=1) >= 2**18))
    assert 0.25 <= np.mean(wide) <= 0.75


def test_masks_and_targets_stay_as_drawn():
    task = task_of(Array("x", (4, 5)), Array("targets", (4,), dtype="int64", init="integers(0,5)"))
    for case in CASES:
        targets = inputs_for(task, "cpu", case, seed=3)[1]
        assert np.all((targets >= 0) & (targets < 5))


def test_a_task_narrows_its_cases_and_plain_stays():
    assert cases_of(task_of(cases=("small", "permuted"))) == ("plain", "permuted", "small")
    assert cases_of(PAIR) == CASES


def test_an_unknown_case_name_is_refused():
    with pytest.raises(ValueError, match=r"seen the cases \['negative'\], expected names out of"):
        cases_of(dataclasses.replace(PAIR, cases=("negative",)))


def test_centred_draws_have_both_signs_and_reach_beyond_three():
    first = inputs_for(PAIR, "cpu", "centred", seed=3)[0]
    assert abs(float(first.mean())) < 0.2
    assert first.max() > 3
    assert first.min() < -3


def test_sparse_draws_are_zero_but_for_a_few_elements_and_both_ends():
    first = inputs_for(PAIR, "cpu", "sparse", seed=3)[0]
    assert 3 <= np.count_nonzero(first) <= 3 + 0.01 * first.size


@pytest.mark.parametrize("elements", [1000, 4_000, 600_000, 1_000_000])
def test_either_end_of_sparse_draws_is_far_from_its_nearest_number_of_eleven_bits(elements):
    x = inputs_for(task_of(Array("x", (elements,))), "cpu", "sparse", seed=3)[0][[0, -1]]
    assert np.all(x - nearest(x, 11) > 1e-4 * x)


@pytest.mark.parametrize("elements", [1000, 1_000_000])
def test_either_end_of_sparse_draws_is_a_large_part_of_their_sum_of_squares(elements):
    x = inputs_for(task_of(Array("x", (elements,))), "cpu", "sparse", seed=3)[0].astype(np.float64)
    assert min(x[0] ** 2, x[-1] ** 2) > 0.2 * np.sum(x**2)


def test_draws_that_are_alike_are_integers_of_one_range():
    for x in inputs_for(PAIR, "cpu", "alike", seed=3):
        np.testing.assert_array_equal(x, np.rint(x))
        assert 100 < np.abs(x).max() <= 300


STRUCTURED = task_of(
    *(Array(name, (33, 33), init=f"{name}(uniform(0,1))") for name in ("triu", "symmetric", "tril", "softmax", "sign"))
)


@pytest.mark.parametrize("case", CASES)
def test_structures_that_a_task_promises_are_kept(case):
    upper, symmetric, lower, probabilities, signs = inputs_for(STRUCTURED, "cpu", case, seed=3)
    np.testing.assert_array_equal(upper, np.triu(upper))
    np.testing.assert_array_equal(symmetric, symmetric.T)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert set(np.unique(signs)) <= {-1, 1}


def test_numbers_of_a_symmetric_input_are_a_case_s_own():
    task = task_of(Array("x", (33, 33), init="symmetric(uniform(0,1))"))
    x = inputs_for(task, "cpu", "integers", seed=3)[0]
    np.testing.assert_array_equal(x, np.rint(x))  # a mean of two would end in halves
