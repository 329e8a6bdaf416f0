"""The reference's error where it is a matter of luck: outputs of few elements are measured on moved inputs as well."""

import dataclasses

import numpy as np
import pytest

from evaluator import _core
from evaluator.judge.accuracy import Accuracy
from evaluator.judge.bounds import bound_for, measure
from evaluator.judge.cases import inputs_for
from evaluator.judge.conditioning import FIRST_DRAWS, MOST_DRAWS, moved, steadied
from evaluator.judge.expected import evaluate
from evaluator.judge.oracle import Oracle
from evaluator.tasks import catalog

LUCKY = Accuracy(norm_error=1e-9, element_error=1e-9, dtype="float32", usable=True, scale=1.0, elements_off=1)


def scripted(*errors):
    """Draws with the given errors, then none; and the list of the draws that were asked for."""
    asked = []

    def again(draw):
        asked.append(draw)
        error = errors[draw - 1] if draw <= len(errors) else 0.0
        return (dataclasses.replace(LUCKY, norm_error=error, element_error=error),)

    return again, asked


def test_floats_move_by_one_spacing_up_or_down_and_zeros_stay():
    x = np.linspace(1.0, 2.0, 4000, dtype=np.float32)[1:-1]
    (once,), (again,) = moved([x], 1), moved([x], 2)
    steps = once.view(np.int32) - x.view(np.int32)
    assert set(np.abs(steps)) <= {1, 2}  # of the larger of two neighbouring spacings
    assert 0.45 < (steps > 0).mean() < 0.55
    assert 0.45 < (once == again).mean() < 0.55
    zeros = np.array([0.0, -0.0, np.inf, -np.inf], np.float32)
    assert moved([zeros], 1)[0].tobytes() == zeros.tobytes()


def test_arrays_of_one_case_move_apart_and_whole_numbers_not_at_all():
    x, indices = np.ones(1000, np.float32), np.arange(1000)
    one, other, same = moved([x, x, indices], 1)
    assert 0.4 < (one == other).mean() < 0.6
    assert same is indices


def test_the_largest_error_of_all_draws_counts():
    again, asked = scripted(1e-4, 3e-4, 2e-4)
    (found,) = steadied([LUCKY], again)
    assert (found.norm_error, found.element_error) == (3e-4, 3e-4)
    assert len(asked) == MOST_DRAWS


def test_a_reference_far_below_every_bound_is_not_tried_on_and_on():
    again, asked = scripted(*[1e-8] * FIRST_DRAWS)
    assert steadied([LUCKY], again)[0].norm_error == 1e-8
    assert len(asked) == FIRST_DRAWS


@pytest.mark.parametrize(
    "one", [dataclasses.replace(LUCKY, elements_off=10_000), dataclasses.replace(LUCKY, dtype="int64")]
)
def test_averages_over_many_elements_and_whole_numbers_are_left_as_they_are(one):
    again, asked = scripted(1e-4)
    assert steadied([one], again) == (one,)
    assert not asked


@pytest.mark.parametrize("error", [np.inf, np.nan, 1e30])
def test_draws_that_overflow_or_make_something_of_zeros_say_nothing(error):
    again, _ = scripted(error, 2e-5)
    assert steadied([LUCKY], again)[0].norm_error == 2e-5


def test_a_difference_that_cancels_is_judged_by_what_its_terms_round_to():
    """The reference makes no error here, by luck: both parts are the same in either precision."""
    part = np.float32(10.0) + np.arange(1, 9, dtype=np.float32) / 64

    def difference(one, other):
        return [np.array([(one * one).sum() - (other * other).sum() + 1])]

    found = evaluate([part, part], lambda arrays: difference(*arrays), _core.compare, integral=False)
    assert 1e-5 < found.accuracies[0].norm_error < 1e-3
    assert measure([np.array([1 + 6e-5], np.float32)], found, "loss", "fp32")[0].ok
    assert not measure([np.array([1.1], np.float32)], found, "loss", "fp32")[0].ok


def test_an_honest_loss_near_its_margin_is_within_its_bound():
    """Triplets whose reference is ten times closer than its own rounding: a plain program was refused here."""
    task, seed = catalog.get("1_099"), 2152454987
    anchor, positive, negative = (x.astype(np.float32) for x in inputs_for(task, "cpu", "large", seed))
    near, far = (
        np.sqrt(np.cumsum((anchor - x + np.float32(1e-6)) ** 2, axis=1, dtype=np.float32)[:, -1])
        for x in (positive, negative)
    )
    seen = np.maximum(near - far + np.float32(1), 0).mean(dtype=np.float32)
    with Oracle() as oracle:
        answer = oracle.expected(task, "cpu", "large", seed)
    (finding,) = measure([np.asarray(seen)], answer, task.family, task.precision)
    assert finding.errors.norm_error > 1e-5
    assert finding.ok
    assert finding.bound.norm < 2e-2  # half precision shows nevertheless


def test_outputs_of_few_elements_have_twice_the_room():
    few = dataclasses.replace(LUCKY, norm_error=1e-3, element_error=1e-3)
    many = dataclasses.replace(few, elements_off=10_000)
    assert bound_for(few, "loss", "fp32").norm == 2 * bound_for(many, "loss", "fp32").norm == pytest.approx(0.016)
