"""Workers: every batch ends in its records or in a failure, whatever a worker does."""

import sys
import time
from pathlib import Path

import pytest

from evaluator.mutants import crew as crew_module
from evaluator.mutants.crew import Crew, Failure
from evaluator.mutants.derive import Mutant
from evaluator.mutants.trial import Original, Settings, Trial
from evaluator.mutants.trying_process import Batch
from evaluator.tasks import catalog

sys.path.insert(0, str(Path(__file__).parent))  # children find it there too
import scripted_workers

TASK = catalog.get("1_019")


def batch(program, *ids):
    mutants = tuple(Mutant(each, program, "1_019", "tie_breaking", 1, "a", "b", f"text {each}") for each in ids)
    return Batch(program, f"text of {program}", TASK, mutants)


def test_records_of_all_batches_come():
    with Crew(2, Settings(), scripted_workers.obedient) as crew:
        found = list(crew.records([batch("a"), batch("b", "1", "2"), batch("c", "3")]))
    assert [each for each in found if isinstance(each, Original)] == [Original("a", "text of a", 1.0, None)]
    assert sorted(each.id for each in found if isinstance(each, Trial)) == ["1", "2", "3"]


@pytest.mark.parametrize(("program", "message"), [("fails", "out of luck"), ("dies", "its worker died (exit code 7)")])
def test_a_failure_costs_its_own_batch_only(program, message):
    with Crew(1, Settings(), scripted_workers.obedient) as crew:
        found = list(crew.records([batch(program, "1"), batch("b", "2")]))
    (failure,) = [each for each in found if isinstance(each, Failure)]
    assert failure.batch.program == program
    assert message in failure.message
    assert "2" in [each.id for each in found if isinstance(each, Trial)]


def test_a_worker_that_hangs_is_replaced(monkeypatch):
    monkeypatch.setattr(crew_module, "SECONDS_A_MUTANT", 0.1)
    with Crew(1, Settings(), scripted_workers.sleeping) as crew:
        (failure,) = list(crew.records([batch("a", "1")]))
    assert "no end within" in failure.message


def test_nothing_is_begun_after_the_time_is_up():
    with Crew(1, Settings(), scripted_workers.obedient) as crew:
        assert list(crew.records([batch("a", "1")], until_s=time.monotonic())) == []
