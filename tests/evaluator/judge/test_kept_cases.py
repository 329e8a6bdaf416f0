"""What is kept of the cases of a task whose arrays do not all fit."""

import dataclasses

import numpy as np
import pytest

from evaluator import _core
from evaluator.judge.expected import evaluate
from evaluator.judge.kept_cases import KeptCases, with_arrays

SMALL, LARGE = ("small", (), "fp32"), ("large", (), "fp32")


def expected(number, size=100):
    return evaluate([np.full(size, number, np.float32)], lambda arrays: [2 * arrays[0]], _core.compare, integral=False)


ROOM = 10 * expected(0).nbytes  # a third of it holds three


def judged(kept, task, count, size=100):
    """Asks for so many cases of a task, as one program does; gives the numbers of those that were kept."""
    hits = []
    for number in range(count):
        key = (*task, "plain", number)
        if kept.get(key) is not None:
            hits.append(number)
        else:
            kept.keep(key, expected(number, size))
    kept.next_program()
    return hits


def test_of_more_cases_than_fit_some_are_kept_and_not_none():
    kept = KeptCases(ROOM)
    assert [judged(kept, SMALL, 5) for _ in range(4)] == [[], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_those_of_a_task_that_is_done_with_make_room():
    kept = KeptCases(ROOM)
    judged(kept, SMALL, 3)
    assert judged(kept, LARGE, 3) == []  # while the program before may go on
    judged(kept, LARGE, 3)
    assert judged(kept, LARGE, 3) == [0, 1, 2]
    assert judged(kept, SMALL, 3) == []


def test_a_case_that_leaves_too_little_room_to_work_in_is_not_kept_but_its_figures_are():
    kept = KeptCases(ROOM)
    key, found = (*LARGE, "plain", 0), expected(1, size=160)
    kept.keep(key, found)
    assert kept.get(key) is None
    assert kept.figures(key).accuracies == found.accuracies
    assert kept.figures(key).nbytes == 0


@pytest.mark.parametrize("given_up", [False, True])
def test_arrays_that_are_held_are_known_until_they_are_given_up(given_up):
    kept, found = KeptCases(ROOM), expected(1)
    kept.keep((*SMALL, "plain", 0), found)
    if given_up:
        kept.clear()
    assert kept.holds(found) is not given_up
    assert kept.figures((*SMALL, "plain", 0)) is not None


def test_arrays_made_anew_have_a_digest_of_their_own():
    found = expected(3)
    bare = dataclasses.replace(found, inputs=(), exact=())
    again = with_arrays(bare, found.inputs, found.exact, lambda array: int(array.sum()))
    assert again.accuracies == (dataclasses.replace(found.accuracies[0], digest=600),)
    assert (again.inputs, again.exact) == (found.inputs, found.exact)
