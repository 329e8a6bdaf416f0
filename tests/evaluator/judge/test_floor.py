"""No program is faster than its device could move the bytes."""

import pytest

from evaluator.judge.examination import _check_floor
from evaluator.judge.findings import Findings
from evaluator.records import Interval, Mode, Outcome, ProgramFault, Rung


def found(taken_us, floor_us):
    findings = Findings(task="t", size="kb", device="cuda", mode=Mode.QUICK)
    findings.times["program"] = Interval(value=taken_us, low=taken_us, high=taken_us)
    findings.floor_us = floor_us
    return findings


@pytest.mark.parametrize(("taken_us", "floor_us"), [(39.0, 39.0), (220.0, 39.0), (1.0, None)])
def test_a_time_above_the_floor_or_without_one_passes(taken_us, floor_us):
    assert _check_floor(found(taken_us, floor_us)) is None


def test_a_time_below_the_floor_is_no_score():
    with pytest.raises(ProgramFault) as caught:
        _check_floor(found(38.9, 220.0))
    fault = caught.value.fault
    assert (fault.outcome, fault.rung) == (Outcome.TOO_FAST, Rung.TIMING)
    assert "took 38.9 us; moving inputs and outputs takes 220.0 us" in fault.message
