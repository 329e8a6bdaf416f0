"""How many calls are timed, and what they come to."""

import itertools
import math
import random

import pytest

from evaluator.baselines import sampling
from evaluator.baselines.sampling import Effort, sample


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(sampling, "_WARM_S", 0.0)


def scattered(median_us):
    """The same times in every run, half of them more than 20 % off."""
    draws = random.Random(1)
    return lambda: draws.lognormvariate(math.log(median_us), 0.3)


def test_equal_times_end_at_the_least_number():
    found = sample(lambda: 40.0, Effort())
    assert found.median_us == pytest.approx(40.0)
    assert (found.low_us, found.high_us) == (pytest.approx(40.0), pytest.approx(40.0))
    assert found.samples == 21


def test_the_first_calls_are_not_timed():
    slow_at_first = itertools.chain([9e6, 9e6, 9e6], itertools.repeat(40.0))
    assert sample(lambda: next(slow_at_first), Effort()).high_us == pytest.approx(40.0)


def test_scattered_times_go_on_until_the_time_is_spent():
    found = sample(scattered(10_000.0), Effort(width=1e-6, budget_s=1.0))
    assert 70 <= found.samples <= 140  # of 10 ms in the median
    assert found.low_us < found.median_us < found.high_us


def test_seven_calls_are_made_whatever_they_take():
    assert sample(lambda: 20e6, Effort(budget_s=0.1)).samples == 7


def test_short_calls_end_at_the_largest_number():
    assert sample(scattered(1.0), Effort(width=1e-9)).samples == sampling.MOST_SAMPLES
