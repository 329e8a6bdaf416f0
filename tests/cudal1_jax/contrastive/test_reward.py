import math

import pytest

from cudal1_jax.contrastive.reward import JumpRule, fill_unjudged, is_jump, reward, settle, smooth, speedup, success
from evaluator.records import Interval, Outcome

RULE = JumpRule(above=3.0, times_record=2.0, tolerance=0.1)


def test_reward_on_a_cpu_is_the_speedup_over_the_plain_program(verdict):
    assert reward(verdict(speedup=1.37)) == 1.37


def test_reward_on_cuda_is_the_smaller_paired_speedup_and_ignores_stored_baselines(verdict):
    speedups = {"eager": Interval(2.0, 1.9, 2.1), "graph": Interval(1.4, 1.3, 1.5), "xla": Interval(0.5, 0.4, 0.6)}
    measured = verdict(device="cuda", speedups=speedups)
    assert reward(measured) == 1.4  # 0.5 would be the unpaired figure, 2.0 the flattering one
    assert speedup(measured) == speedups["graph"]


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_reward_of_every_failure_is_zero_even_where_it_was_fast(verdict, outcome):
    failed = verdict(outcome=outcome, speedups={"plain": Interval(9.0, 8.9, 9.1)})
    assert reward(failed) == 0.0
    assert success(failed) == 0.0


def test_reward_of_a_right_program_without_a_baseline_is_one(verdict):
    assert reward(verdict(speedup=None)) == 1.0


def test_smoothing_matches_numbers_worked_by_hand():
    # history 1, 2, 3: mu = 2, population sigma = sqrt(2/3) = 0.8165 (the sample sigma would be 1 and give 0.5)
    got = smooth([2.5, 0.0], [1.0, 2.0, 3.0], window=64, sigma_min=1e-3, clip=1.5)
    assert got == pytest.approx([0.5 / math.sqrt(2 / 3), -1.5])


def test_smoothing_looks_at_the_last_window_only():
    assert smooth([1.0], [100.0, 1.0, 1.0], window=2, sigma_min=1e-3, clip=1.5) == [0.0]


def test_smoothing_of_a_constant_history_divides_by_the_smallest_sigma():
    assert smooth([1.0005, 1.1], [1.0] * 8, window=64, sigma_min=1e-3, clip=1.5) == pytest.approx([0.5, 1.5])


def test_smoothing_without_history_says_nothing():
    assert smooth([0.0, 0.0], [], window=64, sigma_min=1e-3, clip=1.5) == [0.0, 0.0]


def test_a_fault_of_ours_neither_rewards_nor_punishes(verdict):
    verdicts = [verdict(), verdict(outcome=Outcome.EVALUATOR_ERROR), verdict(outcome=Outcome.WRONG_VALUE)]
    assert fill_unjudged([1.0, 0.0, 0.0], verdicts) == [1.0, 0.5, 0.0]
    assert fill_unjudged([0.0], [verdict(outcome=Outcome.EVALUATOR_ERROR)]) == [0.0]


@pytest.mark.parametrize(
    ("measured", "record", "expected"),
    [(3.01, 3.0, True), (2.9, 1.4, True), (2.9, 1.5, False), (2.9, None, False), (1.0, 1.0, False)],
)
def test_a_sudden_jump_is_a_high_figure_or_twice_the_record(verdict, measured, record, expected):
    assert is_jump(verdict(speedup=measured), record, RULE) is expected


def test_a_failure_is_never_a_jump(verdict):
    assert not is_jump(verdict(outcome=Outcome.WRONG_VALUE), 0.1, RULE)


@pytest.mark.parametrize(
    ("second", "outcome"), [(4.3, Outcome.OK), (3.5, Outcome.NOT_REPRODUCED), (4.5, Outcome.NOT_REPRODUCED)]
)
def test_a_second_measurement_more_than_a_tenth_away_rejects_the_first(verdict, second, outcome):
    assert settle(verdict(speedup=4.0), verdict(speedup=second), RULE).outcome is outcome


def test_a_program_that_fails_when_measured_again_is_not_reproduced_and_says_why(verdict):
    settled = settle(verdict(speedup=4.0), verdict(outcome=Outcome.WRONG_VALUE, message="element 3"), RULE)
    assert settled.outcome is Outcome.NOT_REPRODUCED
    assert "wrong_value: element 3" in settled.message
    assert reward(settled) == 0.0


def test_a_verdict_that_was_not_rechecked_stands(verdict):
    first = verdict(speedup=4.0)
    assert settle(first, None, RULE) is first
