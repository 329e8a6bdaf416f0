import math

import pytest

from cudal1_jax.contrastive.records import Judged
from cudal1_jax.contrastive.reward import fill_unjudged, record, reward, smooth, speedup, success
from evaluator.records import Interval, Outcome


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


def test_the_record_of_a_task_counts_right_programs_of_that_task_only(verdict):
    entries = [
        Judged(step, 0, task, "p", "", verdict(speedup=speedup, outcome=outcome))
        for step, task, speedup, outcome in [
            (-1, "1_019", 1.2, Outcome.OK),
            (0, "1_019", 1.7, Outcome.OK),
            (1, "1_019", 9.0, Outcome.NOT_REPRODUCED),
            (1, "1_023", 5.0, Outcome.OK),
        ]
    ]
    assert record(entries, "1_019") == 1.7
    assert record(entries, "1_040") is None
