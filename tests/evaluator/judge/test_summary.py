"""Summaries: by hand, with misses, and without the tasks that flatter."""

import dataclasses

import pytest

from evaluator.judge.findings import Findings
from evaluator.judge.summary import speedups, summarise
from evaluator.records import Fault, Interval, Mode, Outcome, Rung


def verdict(task, speedup=None, outcome=Outcome.OK, peak_bytes=100):
    found = Findings(task=task, size="cpu", device="cpu", mode=Mode.QUICK, peak_bytes=peak_bytes)
    if speedup is not None:
        found.speedups["plain"] = Interval(speedup, speedup, speedup)
    return found.verdict(None if outcome is Outcome.OK else Fault(outcome, Rung.CORRECTNESS, ""))


def test_statistics_by_hand():
    found = speedups([1.0, 2.0, 4.0, 8.0])
    assert found.geomean == pytest.approx(64 ** (1 / 4))
    assert found.mean == 3.75
    assert (found.lower_quartile, found.median, found.upper_quartile) == (1.75, 3.0, 5.0)
    assert found.leave_one_out == pytest.approx(7 / 3)  # one task carries more than a third of the mean
    assert (found.maximum, found.above, found.count) == (8.0, 3, 4)


def test_a_miss_counts_as_one_over_all_tasks_and_not_at_all_over_successes():
    summary = summarise([verdict("a", 4.0), verdict("b", outcome=Outcome.WRONG_VALUE)])
    assert summary.success_rate == 0.5
    assert summary.all_tasks.geomean == pytest.approx(2.0)
    assert summary.successes.geomean == pytest.approx(4.0)


def test_fast_p_is_over_all_tasks():
    summary = summarise(
        [verdict("a", 4.0), verdict("b", 1.1), verdict("c", 0.9), verdict("d", outcome=Outcome.TIMEOUT)]
    )
    assert summary.fast_p[1.0] == 0.5
    assert summary.fast_p[1.2] == 0.25
    assert summary.fast_p[5.0] == 0.0


def test_tasks_can_be_left_out():
    verdicts = [verdict("a", 1.2), verdict("degenerate", 300.0)]
    assert summarise(verdicts).all_tasks.mean == pytest.approx(150.6)
    assert summarise(verdicts, leave_out={"degenerate"}).all_tasks.mean == pytest.approx(1.2)


def test_ok_without_a_baseline_is_a_success_without_a_speedup():
    summary = summarise([verdict("user")])
    assert (summary.success_rate, summary.all_tasks, summary.successes) == (1.0, None, None)


def test_the_raw_value_counts_not_the_rounded_one():
    assert speedups([1.0099]).above == 0
    assert speedups([1.011]).above == 1


def test_figures_of_two_devices_do_not_add_up():
    rows = [
        dataclasses.replace(verdict("a", 4.0), device_name="NVIDIA H200"),
        dataclasses.replace(verdict("b", 2.0), device_name="NVIDIA L4"),
    ]
    with pytest.raises(ValueError, match="verdicts from NVIDIA H200 and NVIDIA L4 do not add up"):
        summarise(rows)
    assert summarise(rows, leave_out={"b"}).ok == 1
    assert summarise([rows[0], verdict("c", 2.0)]).ok == 2  # from before devices had names


def test_nothing_to_summarise():
    summary = summarise([])
    assert (summary.tasks, summary.success_rate, summary.all_tasks) == (0, 0.0, None)
    assert speedups([]) is None


@pytest.mark.parametrize("values", [[0.0], [-1.0, 2.0], [float("nan")], [float("inf")]])
def test_impossible_speedups_are_refused(values):
    with pytest.raises(ValueError, match="positive and finite"):
        speedups(values)
