"""What a verdict makes of what compute-sanitizer says."""

import pytest

from evaluator.devices.cuda import sanitizer
from evaluator.devices.cuda.sanitizer import Report, Unusable
from evaluator.judge.sanitized import watched_run
from evaluator.records import Outcome, ProgramFault
from evaluator.tasks import catalog

RELU = catalog.get("1_019")


@pytest.fixture
def says(monkeypatch):
    """Sets what the tools say, or the error that one of them ends with."""

    def set_reports(*reports, found="/usr/bin/compute-sanitizer"):
        def lazily(executable, compiled, inputs):
            assert inputs[0].shape == RELU.arrays_at("cpu")[0].shape
            for report in reports:
                if isinstance(report, Exception):
                    raise report
                yield report

        monkeypatch.setattr(sanitizer, "find", lambda: found)
        monkeypatch.setattr(sanitizer, "reports", lazily)

    return set_reports


def test_what_is_found_harmless_is_told(says):
    says(Report("memcheck", None), Report("racecheck", "Warning: Race reported"), Report("initcheck", None))
    said = watched_run(None, RELU, "cpu", seed=3)
    assert said[1] == "compute-sanitizer racecheck: Warning: Race reported"
    assert len(said) == 3


def test_a_stray_access_is_a_fault(says):
    says(Report("memcheck", "Invalid __global__ read of size 4 bytes"), Report("racecheck", None))
    with pytest.raises(ProgramFault, match="Invalid __global__ read") as caught:
        watched_run(None, RELU, "cpu", seed=3)
    assert caught.value.fault.outcome is Outcome.OUT_OF_BOUNDS


def test_a_tool_that_fails_or_is_missing_is_told_and_refuses_nothing(says):
    says(Report("memcheck", None), Unusable("compute-sanitizer racecheck: exit code 1: no device"))
    assert watched_run(None, RELU, "cpu", seed=3)[1].startswith("not watched to the end: compute-sanitizer racecheck")
    says(found=None)
    assert watched_run(None, RELU, "cpu", seed=3) == ["not run under compute-sanitizer, which is not installed"]
