"""Which worker takes which waiting job next, asked of slots and jobs alone."""

import itertools

import pytest

from evaluator.judge.job import Job
from evaluator.judge.turns import MOST_OVERTAKEN
from evaluator.tasks.task import Array, Task
from evaluator.workers.assignment import next_assignment, wanted_model
from evaluator.workers.slot import QueuedJob, Slot

QUICK, VERIFY = {"mode": "quick"}, {"mode": "verify"}


def queued(key, task_id="t", options=QUICK, *, suspect=False, device_name=None):
    task = Task(id=task_id, name=task_id, family="x", source="", sizes={"cpu": (Array("x", (1,)),)})
    return QueuedJob(Job(key=key, text="", task=task, device_name=device_name), options, suspect=suspect)


def slots_of(*devices, capacity=1):
    """One for each device; None: its worker is starting."""
    return [Slot(place, worker=None, capacity=capacity, device_name=device) for place, device in enumerate(devices)]


def assigned(slots, waiting, models=()):
    """(place, key) of each job that is taken until no worker takes one more; `waiting` keeps the others."""
    found = []
    while (pair := next_assignment(slots, waiting, dict(models))) is not None:
        slot, taken = pair
        waiting.remove(taken)
        slot.take(taken.job.key, taken, given_s=60.0)
        found.append((slot.place, taken.job.key))
    return found


def judged_in_turn(slots, waiting):
    """(place, key) in the order of taking, while by turns each ends the job that it has had longest."""
    turns, found = itertools.cycle(slots), assigned(slots, waiting)
    while waiting:
        held = next(turns).held
        del held[next(iter(held))]
        found += assigned(slots, waiting)
    return found


def test_without_jobs_or_workers_nothing_is_taken():
    assert assigned(slots_of("A"), []) == []
    assert assigned([], [queued(0)]) == []


def test_jobs_are_taken_in_the_order_in_which_they_came():
    assert assigned(slots_of("A", capacity=4), [queued(key) for key in range(4)]) == [(0, key) for key in range(4)]


def test_a_worker_that_is_starting_or_full_takes_none():
    waiting = [queued(key) for key in range(5)]
    assert assigned(slots_of(None, "A", capacity=2), waiting[:1]) == [(1, 0)]
    assert len(assigned(slots_of("A", capacity=3), waiting)) == 3


@pytest.mark.parametrize("count", [1, 6, 7])
def test_jobs_go_to_the_worker_that_has_the_fewest(count):
    slots = slots_of("A", "A", capacity=4)
    assigned(slots, [queued(key) for key in range(count)])
    assert [len(slot.held) for slot in slots] == [(count + 1) // 2, count // 2]


def test_a_worker_that_is_ready_first_leaves_the_others_their_share():
    slots = slots_of("A", None, None, capacity=4)
    assigned(slots, [queued(key) for key in range(6)])
    assert [len(slot.held) for slot in slots] == [2, 0, 0]


def test_workers_of_another_model_have_no_share():
    slots = slots_of("A", "B", capacity=4)
    assigned(slots, [queued(key, device_name="A") for key in range(4)])
    assert [len(slot.held) for slot in slots] == [4, 0]


def test_a_task_stays_with_its_model_and_a_job_that_names_one_gets_it():
    assert wanted_model(queued(0), {}) is None
    assert wanted_model(queued(0), {"t": "B"}) == "B"
    assert wanted_model(queued(0, device_name="A"), {"t": "B"}) == "A"
    waiting = [queued(0), queued(1), queued(2, "u")]
    assert assigned(slots_of("A", "B"), waiting, {"t": "B"}) == [(0, 2), (1, 0)]
    assert [each.job.key for each in waiting] == [1]


def test_jobs_of_one_workload_go_to_one_worker_in_a_row():
    found = judged_in_turn(slots_of("A", "A"), [queued(key, "ab"[key % 2]) for key in range(12)])
    assert sorted(found) == [(place, key) for place in (0, 1) for key in range(place, 12, 2)]


def test_a_job_of_another_workload_does_not_wait_for_ever():
    waiting = [queued("first", "a"), queued("other", "b"), *(queued(key, "a") for key in range(30))]
    found = [key for _, key in judged_in_turn(slots_of("A"), waiting)]
    assert found.index("other") == 1 + MOST_OVERTAKEN


def test_jobs_with_other_options_wait_until_the_worker_has_none_left():
    slots = slots_of("A", capacity=3)
    waiting = [queued(0), queued(1, options=VERIFY), queued(2)]
    assert [key for _, key in assigned(slots, waiting)] == [0, 2]
    slots[0].held.clear()
    assert [key for _, key in assigned(slots, waiting)] == [1]


def test_a_suspect_is_alone_with_its_worker():
    slots = slots_of("A", capacity=3)
    assert [key for _, key in assigned(slots, [queued("suspect", suspect=True), queued(0)])] == ["suspect"]
    assert not slots[0].has_room


def test_a_worker_that_holds_jobs_takes_none_beside_a_suspect_that_waits_for_it():
    slots = slots_of("A", capacity=3)
    slots[0].take("held", queued("held"), given_s=60.0)
    assert assigned(slots, [queued("suspect", suspect=True), queued(0)]) == []


def test_one_suspect_keeps_one_worker_from_taking_others():
    slots = slots_of("A", "A", capacity=3)
    for slot in slots:
        slot.take(f"held {slot.place}", queued(slot.place), given_s=60.0)
    found = assigned(slots, [queued("suspect", suspect=True), *(queued(key) for key in range(4))])
    assert {place for place, _ in found} == {1}
    assert "suspect" not in {key for _, key in found}
