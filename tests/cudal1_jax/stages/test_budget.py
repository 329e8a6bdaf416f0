import pytest

from cudal1_jax.stages.budget import Budget, Stopwatch


class Clock:
    def __init__(self):
        self.s = 100.0

    def __call__(self):
        return self.s


def test_the_last_iteration_is_the_last_that_can_end_in_time():
    clock = Clock()
    budget = Budget(clock, started_s=90.0, limit_s=100.0, reserve_s=10.0)  # until 180
    done = 0
    while budget.allows_another():
        clock.s += 20.0
        budget.spent(20.0)
        done += 1
    assert (done, clock.s) == (3, 160.0)  # at 160 another 20 s and 15 % of it would end at 183


def test_the_last_iteration_counts_since_the_first_one_compiles():
    clock = Clock()
    budget = Budget(clock, started_s=100.0, limit_s=100.0, reserve_s=0.0)
    budget.spent(80.0)
    clock.s = 180.0
    assert not budget.allows_another()
    budget.spent(15.0)
    assert budget.allows_another()


def test_without_a_limit_time_never_ends():
    clock = Clock()
    budget = Budget(clock, started_s=0.0, limit_s=0.0, reserve_s=10.0)
    budget.spent(1e9)
    assert budget.allows_another()


def test_a_stopwatch_tells_each_part_and_all_of_them():
    clock = Clock()
    watch = Stopwatch(clock)
    clock.s += 3.0
    watch.lap("rollout")
    clock.s += 4.0
    watch.lap("judge")
    assert watch.laps() == {"time/rollout_s": 3.0, "time/judge_s": 4.0, "time/iteration_s": 7.0}
    assert watch.total_s == pytest.approx(7.0)
