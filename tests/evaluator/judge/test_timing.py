"""Pairs, their order and number, on sessions whose times are scripted."""

import numpy as np
import pytest

from evaluator.judge import timing
from evaluator.judge.clock import ClockedSession, derived
from evaluator.judge.recheck import check_reproduced, stands_out
from evaluator.judge.timing import (
    BUCKETS,
    MIN_SAMPLE_US,
    Pairs,
    Schedule,
    replays_for,
    rounded,
    steady_pairs,
    time_alone,
    time_pairs,
)
from evaluator.records import Interval, Outcome, ProgramFault

QUICK = Schedule(width=0.01, budget_s=0.3, min_pairs=14)


class Scripted:
    """A session of known time; `log` tells who was timed when."""

    def __init__(self, us, noise=0.0, log=None, seed=0):
        self.us, self.noise = us, noise
        self.log = [] if log is None else log
        self.rng = np.random.default_rng(seed)

    def time(self, replays):
        self.log.append((self, replays))
        return self.us * (1 + self.noise * self.rng.standard_normal())


def pairs_of(reference, program, schedule=QUICK, seed=1):
    return time_pairs([(reference, program)] * BUCKETS, schedule, seed)


def test_a_speedup_keeps_the_buckets_that_it_is_the_median_of():
    # Two pairs a bucket, bucket after bucket, with ratios of 1 and k squared: k is their mean on logarithms.
    pairs = Pairs(tuple(us for k in range(1, 8) for us in (1.0, float(k * k))), (1.0,) * 14)
    assert pairs.speedup.buckets == pytest.approx((1, 2, 3, 4, 5, 6, 7))
    assert pairs.speedup.value == pytest.approx(4)
    assert pairs.reference.buckets == ()


def test_the_ratio_is_reference_over_program():
    pairs = pairs_of(Scripted(9000.0), Scripted(3000.0))
    assert pairs.speedup == Interval(*[pytest.approx(3.0)] * 3, buckets=pytest.approx((3.0,) * 7))
    assert pairs.program.value == pytest.approx(3000.0)


def test_steady_times_stop_after_two_pairs_a_bucket():
    assert len(pairs_of(Scripted(3000.0), Scripted(3000.0)).program_us) == 14


def test_noisy_times_stop_when_the_time_is_spent():
    pairs = pairs_of(Scripted(5000.0, 0.5, seed=1), Scripted(5000.0, 0.5, seed=2))
    assert len(pairs.program_us) == 35  # 0.3 s at about 10 ms a pair, in rounds of seven


def test_very_many_short_samples_are_looked_at_ever_more_rarely(monkeypatch):
    flat, looks = timing._flat, []
    monkeypatch.setattr(timing, "_flat", lambda buckets: looks.append(len(buckets[0])) or flat(buckets))
    short = Schedule(width=0.001, budget_s=0.07, min_pairs=14, min_sample_us=0.0)
    rounds = len(pairs_of(Scripted(5.0, 0.1, seed=1), Scripted(5.0, 0.1, seed=2), short).program_us) / BUCKETS
    assert 1000 <= rounds < 1040  # 0.07 s at 10 us a pair, and the rounds up to the next look
    assert looks[::2][:64] == [*range(1, 64), 64]  # both sides are flattened at each
    assert len(looks) / 2 < 64 + 32 * 4 + 2


def test_slow_programs_still_get_seven_pairs():
    assert len(pairs_of(Scripted(1e6, 0.5), Scripted(1e6, 0.5)).program_us) == 7


def test_every_round_visits_each_bucket_once_and_either_side_leads():
    log = []
    buckets = [(Scripted(3000.0, log=log), Scripted(3000.0, log=log)) for _ in range(BUCKETS)]
    time_pairs(buckets, QUICK, seed=4)
    timed = [side for side, _ in log[-28:]]
    leads = set()
    for start in (0, 14):
        visited = set()
        for one, two in zip(timed[start : start + 14 : 2], timed[start + 1 : start + 14 : 2], strict=True):
            (bucket,) = [i for i, pair in enumerate(buckets) if {id(one), id(two)} == {id(pair[0]), id(pair[1])}]
            visited.add(bucket)
            leads.add(one is buckets[bucket][0])
        assert visited == set(range(BUCKETS))
    assert leads == {True, False}


def test_what_differs_between_processes_widens_the_interval():
    # Seven processes of one program that run at 1 % steps of each other, each with perfect repeatability.
    buckets = [(Scripted(3000.0), Scripted(3000.0 * (1 + 0.01 * step))) for step in range(-3, 4)]
    speedup = time_pairs(buckets, QUICK, seed=1).speedup
    assert speedup.low < 0.98
    assert speedup.high > 1.02


@pytest.mark.parametrize("us", [0.0, 0.3, 7.0, 450.0, 1999.0, 2000.0, 50_000.0])
def test_a_sample_lasts_at_least_two_milliseconds(us):
    replays = replays_for(Scripted(us))
    assert replays * max(us, 0.2) >= MIN_SAMPLE_US
    assert replays <= 10_000


def test_a_program_without_a_baseline_has_a_time():
    assert time_alone([Scripted(2500.0)] * BUCKETS, QUICK).value == pytest.approx(2500.0)


def test_a_program_that_takes_no_time_is_still_a_ratio():
    assert pairs_of(Scripted(3000.0), Scripted(0.0)).speedup.value > 1e5


def test_display_rounds_towards_one():
    assert rounded(Interval(1.999, 1.9, 2.1)) == 1.99
    assert rounded(Interval(0.991, 0.9, 1.1)) == 1.0


@pytest.mark.parametrize(
    ("value", "record", "expected"),
    [(2.9, None, False), (3.1, None, True), (2.9, 1.4, True), (2.9, 1.5, False), (1.0, 0.4, True)],
)
def test_scores_that_stand_out(value, record, expected):
    assert stands_out(Interval(value, value, value), record) is expected


def interval(value):
    return Interval(value, value - 0.1, value + 0.1)


def test_a_reproduced_score_is_the_lower_of_the_two():
    assert check_reproduced(interval(4.0), iter([interval(3.8)])).value == 3.8
    assert check_reproduced(interval(4.0), iter([interval(4.3), None])).value == 4.0  # the third is never taken


def test_one_spoiled_measurement_is_forgiven():
    assert check_reproduced(interval(4.0), iter([interval(2.0), interval(3.9)])).value == 3.9


def test_a_higher_score_than_the_first_takes_nothing_from_it():
    assert check_reproduced(interval(5.2), iter([interval(5.9), None])).value == 5.2  # the third is never taken


def test_a_score_that_does_not_come_again_is_not_reproduced():
    with pytest.raises(ProgramFault, match=r"speed-ups of 40.00, 1.00, 1.10") as caught:
        check_reproduced(interval(40.0), iter([interval(1.0), interval(1.1)]))
    assert caught.value.fault.outcome is Outcome.NOT_REPRODUCED


def test_times_that_spread_too_far_are_taken_anew_once_and_then_unstable():
    noisy, calm = ([pairs_of(Scripted(3000.0, noise, seed=1), Scripted(1500.0, noise, seed=2))] for noise in (0.5, 0.0))
    schedule, schedules = Schedule(width=0.01, budget_s=0.3, min_pairs=14), []

    def steady(pairs, widest):
        left = iter(pairs)
        return steady_pairs(lambda each: schedules.append(each) or next(left), schedule, widest)

    assert steady(noisy + calm, 0.05).speedup.value == pytest.approx(2.0)
    assert [each.budget_s for each in schedules] == [0.3, 1.2]  # the second attempt takes more pairs
    assert steady(noisy, None).speedup.low < 1.9
    with pytest.raises(ProgramFault, match="wide to either side, expected 5% at most") as caught:
        steady(noisy + noisy, 0.05)
    assert caught.value.fault.outcome is Outcome.UNSTABLE_TIMING


def test_derived_times_depend_on_the_program_and_the_sample_alone():
    one, two = (ClockedSession(Scripted(3000.0, 0.5, seed=s), "ab" * 32, derived) for s in (1, 2))
    times = [one.time(5) for _ in range(4)]
    assert times == [two.time(1) for _ in range(4)]
    assert len(set(times)) > 1
    assert ClockedSession(Scripted(1.0), "cd" * 32, derived).time(1) != times[0]
