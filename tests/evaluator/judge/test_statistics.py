"""Statistics of paired times, and the stopping rule."""

import math

import numpy as np
import pytest

from evaluator import _core

# Made by hand: seven buckets of one pair each, ratios 2 2 2 2 2 2 8 -> the median shrugs off the one bad bucket.
REFERENCE = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 8.0]
PROGRAM = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0]


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0], 3.0), ([4.0, 1.0], 2.5), ([5.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 3.0, 2.0], 2.5)]
)
def test_median_of_odd_and_even_counts(values, expected):
    assert _core.median(values) == expected


def test_median_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        _core.median([])


def test_buckets_are_consecutive_and_differ_by_at_most_one_sample():
    # 9 values: buckets of 1 1 1 2 1 1 2, from b * 9 // 7.
    assert _core.bucket_means([float(i) for i in range(9)]) == [0.0, 1.0, 2.0, 3.5, 5.0, 6.0, 7.5]


def test_fewer_than_seven_samples_are_refused():
    with pytest.raises(ValueError, match="seen 6 samples, expected at least 7"):
        _core.bucket_means([1.0] * 6)


def test_speedup_is_reference_over_program_and_the_median_of_buckets():
    interval = _core.paired_interval(REFERENCE, PROGRAM)
    assert interval.value == pytest.approx(2.0)  # the mean of ratios would be 2.86, program over reference 0.5
    assert interval.low < 2.0 < interval.high


def test_interval_by_hand():
    # Logarithms of the ratios are six times log 2 and once log 8 = 3 log 2: mean 9/7 log 2, deviation 2/sqrt(7) log 2.
    half = 4.013 * (2 / math.sqrt(7)) * math.log(2) / math.sqrt(7)
    interval = _core.paired_interval(REFERENCE, PROGRAM)
    assert interval.high == pytest.approx(2.0 * math.exp(half))
    assert interval.low == pytest.approx(2.0 / math.exp(half))


def test_swapping_the_sides_gives_the_reciprocal():
    rng = np.random.default_rng(3)
    one, two = rng.uniform(1, 2, 40).tolist(), rng.uniform(1, 2, 40).tolist()
    there, back = _core.paired_interval(one, two), _core.paired_interval(two, one)
    assert there.value * back.value == pytest.approx(1.0)
    assert there.low * back.high == pytest.approx(1.0)


def test_drift_common_to_both_sides_does_not_move_the_ratio():
    drift = np.linspace(1, 5, 70)
    interval = _core.paired_interval((3 * drift).tolist(), (2 * drift).tolist())
    assert (interval.low, interval.value, interval.high) == pytest.approx((1.5, 1.5, 1.5))


@pytest.mark.parametrize(
    ("reference", "program", "message"), [([1.0] * 8, [1.0] * 7, "pairs"), ([0.0] * 7, [1.0] * 7, "positive")]
)
def test_unpaired_and_impossible_times_are_refused(reference, program, message):
    with pytest.raises(ValueError, match=message):
        _core.paired_interval(reference, program)


def test_the_interval_covers_the_truth_99_times_in_100():
    rng = np.random.default_rng(11)
    trials, hits = 20_000, 0
    for ratios in np.exp(0.05 * rng.standard_normal((trials, 14))):
        interval = _core.paired_interval(ratios.tolist(), [1.0] * 14)
        hits += interval.low <= 1.0 <= interval.high
    # Three standard errors of a 99 % hit rate are 0.2 %. Student's 3.707 in place of 4.013 would give 98.6 %.
    assert 0.988 < hits / trials < 0.992


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.118, 1.11), (0.992, 1.0), (1.15, 1.15), (0.97, 0.97), (0.9601, 0.97), (1.0, 1.0), (2.999, 2.99), (0.001, 0.01)],
)
def test_rounding_goes_towards_one(ratio, shown):
    assert _core.round_towards_one(ratio) == pytest.approx(shown)


@pytest.mark.parametrize(
    ("pairs", "interval", "spent_s", "expected"),
    [
        (14, (1.0, 0.995, 1.005), 0.0, "TIGHT"),
        (13, (1.0, 0.995, 1.005), 0.0, "CONTINUE"),  # tight by luck, before two a bucket
        (14, (1.0, 0.9, 1.1), 0.0, "CONTINUE"),
        (14, (1.0, 0.9, 1.1), 0.3, "OUT_OF_TIME"),
        (6, (1.0, 0.9, 1.1), 9.0, "CONTINUE"),  # seven pairs are owed however long they take
        (7, (1.0, 0.9, 1.1), 9.0, "OUT_OF_TIME"),
    ],
)
def test_stopping_rule(pairs, interval, spent_s, expected):
    rule = _core.StoppingRule(width=0.01, budget_s=0.3, min_pairs=14)
    assert _core.should_stop(rule, pairs, _core.Interval(*interval), spent_s) == getattr(_core.Stop, expected)
