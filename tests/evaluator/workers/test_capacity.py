"""How many programs a worker traces and compiles at once, and how many it holds."""

import pytest

from evaluator.workers import capacity


@pytest.mark.parametrize(
    ("cores", "workers", "expected"),
    [(1, 1, 1), (4, 1, 1), (16, 1, 4), (128, 1, 4), (16, 2, 2), (128, 8, 4), (16, 8, 1)],
)
def test_a_quarter_of_the_cores_of_a_gpu_compiles_at_least_one_at_most_four(cores, workers, expected, monkeypatch):
    monkeypatch.setattr(capacity.os, "sched_getaffinity", lambda process: set(range(cores)))
    assert capacity.compilers(0, "cuda", workers) == expected


def test_what_is_asked_for_is_given():
    assert [capacity.compilers(7, device, workers=3) for device in ("cuda", "cpu")] == [7, 7]


def test_on_cpu_one_is_judged_at_a_time_unless_asked_otherwise():
    assert capacity.jobs("cpu", capacity.compilers(0, "cpu", workers=1)) == 1
    assert capacity.jobs("cpu", 3) == 3


def test_a_gpu_has_one_and_others_are_compiled_or_ready():
    assert capacity.jobs("cuda", 4) == 1 + 4 + capacity.READY


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="seen -1 compilers for each worker, expected at least 1, or 0"):
        capacity.compilers(-1, "cuda", workers=1)
