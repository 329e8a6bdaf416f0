"""Launches that can be left out, on a bench whose programs do as they are told."""

import contextlib
import dataclasses
import types

import numpy as np
import pytest

from evaluator import _core
from evaluator.judge.accuracy import Accuracy
from evaluator.judge.expected import Expected
from evaluator.judge.knock_out import MAX_KNOCK_OUTS, DeviceLost, idle_launches, own_kernel_share
from evaluator.program.plan import Buffer, Fill, Launch, Matmul, Plan, View
from evaluator.records import Outcome, ProgramFault, Rung
from evaluator.tasks.task import Array, Task

TASK = Task("t", "t", "elementwise", "", {"cpu": (Array("x", (3,)),)})
EXPECTED = Expected((np.ones(3, np.float32),), (np.full(3, 2.0),), (Accuracy(0.0, 0.0, "float32", True, 2.0, 3),))
RIGHT, WRONG, FAULT, LOST = "right", "wrong", "fault", "lost"


class Bench:
    """`effects` says, by the number of the step left out, what comes of it."""

    def __init__(self, effects):
        self.effects, self.tried, self.sound = effects, [], True

    def compare(self, seen, exact, scale=0.0):
        return _core.compare(seen, exact, scale)

    def without(self, compiled, step):
        return step

    def survived(self):
        return self.sound

    @contextlib.contextmanager
    def open(self, step):
        self.tried.append(step)
        yield types.SimpleNamespace(run=lambda inputs, order, seed, guard: self.run(self.effects[step]))

    def run(self, effect):
        if effect in (FAULT, LOST):
            self.sound = effect != LOST
            raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, "a stray access")
        outputs = [np.full(3, 2.0 if effect == RIGHT else 5.0, np.float32)]
        return types.SimpleNamespace(outputs=outputs, unwritten=(0,))


def plan_of(launches):
    """A fill and then so many launches, on lines 1, 2 and so on."""
    steps = [Launch(0, f"k{n}", (1, 1, 1), (1, 1, 1), 0, (), n) for n in range(1, launches + 1)]
    return Plan((Buffer("x", "input", "float32", (3,)),), (), (Fill(View(0, 0, (3,)), 0.0, 1), *steps), ())


def noted(bench, launches):
    return list(idle_launches(bench, plan_of(launches), None, EXPECTED, TASK))


def test_a_launch_without_which_the_outputs_are_right_is_idle_and_no_other():
    bench = Bench({1: WRONG, 2: RIGHT, 3: FAULT})
    assert noted(bench, 3) == ["idle launch: without k2 of line 2 the outputs are the same"]
    assert bench.tried == [1, 2, 3]  # the fill is no launch


def test_a_device_that_is_lost_ends_it_and_what_was_noted_stands():
    bench = Bench({1: RIGHT, 2: LOST, 3: RIGHT})
    notes = idle_launches(bench, plan_of(3), None, EXPECTED, TASK)
    assert [next(notes).partition(":")[0] for _ in range(2)] == ["idle launch", "knock-out ended"]
    with pytest.raises(DeviceLost):
        next(notes)
    assert bench.tried == [1, 2]


def test_a_plan_of_very_many_launches_is_left_alone():
    bench = Bench({})
    (note,) = noted(bench, MAX_KNOCK_OUTS + 1)
    assert "65 launches, at most 64 are tried" in note
    assert bench.tried == []


def test_the_share_of_own_kernels_is_known_from_the_plan_or_from_the_times_of_its_steps():
    launches = plan_of(2)  # a fill and two launches
    product = Matmul(View(0, 0, (1, 3)), View(0, 0, (3, 1)), View(1, 0, (1, 1)), False, False, 4)
    library = dataclasses.replace(launches, steps=(launches.steps[0], product))
    both = dataclasses.replace(launches, steps=(*launches.steps, product))
    assert own_kernel_share(launches) == 1.0
    assert own_kernel_share(library) == 0.0
    assert own_kernel_share(both) is None
    assert own_kernel_share(both, [100.0, 10.0, 20.0, 90.0]) == pytest.approx(0.25)  # a fill is neither
    assert own_kernel_share(dataclasses.replace(launches, steps=launches.steps[:1]), [100.0]) is None
