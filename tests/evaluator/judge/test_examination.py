"""What is asked of timed sessions beyond their times, on a bench whose programs are functions on arrays."""

import dataclasses
import types

import numpy as np
import pytest

from evaluator import _core
from evaluator.judge.cases import inputs_for
from evaluator.judge.examination import Examination, examine
from evaluator.judge.expected import evaluate
from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.judge.modes import EFFORTS
from evaluator.judge.timing import BUCKETS, Schedule
from evaluator.judge.workbench import Reference
from evaluator.records import Mode, Outcome, ProgramFault
from evaluator.tasks import catalog


class Baseline:
    def time(self, replays):
        return 100.0


class Session:
    """Runs `program(x, timed)`; `cost_us(x)` is what a timed launch of it takes."""

    def __init__(self, program, cost_us, timed=False):
        self._program, self._cost_us, self._timed = program, cost_us, timed

    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def run(self, inputs, order="", seed=0, guard="right"):
        self._x = inputs[0]
        outputs = (self._program(self._x, self._timed),)
        return types.SimpleNamespace(outputs=outputs, unwritten=(0,), modified=(), state_changed=False, peak_bytes=1)

    def refill(self, inputs):
        self._x = inputs[0]

    def time(self, replays, *, forget=True):
        return self._cost_us(self._x)

    def outputs(self, alike):
        return (self._program(self._x, self._timed),)


class Bench:
    """A device that takes no time, and whose times are those that the test says."""

    widest = 0.05

    def __init__(self, program, cost_us):
        self._program, self._cost_us = program, cost_us

    def expected(self, task, size, case, seed, once):
        def forward(arrays):
            return [np.maximum(arrays[0], 0)]

        return evaluate(inputs_for(task, size, case, seed), forward, _core.compare, integral=case == "integers")

    def compare(self, seen, exact, scale=0.0):
        return _core.compare(seen, exact.astype(np.float64), scale)

    def open(self, compiled):
        return Session(self._program, self._cost_us)

    def open_timed(self, stack, compiled, inputs):
        session = Session(self._program, self._cost_us, timed=True)
        session.run(inputs.inputs)
        return [session] * BUCKETS

    def references(self, job, inputs, plain):
        return {"eager": Reference("eager", [Baseline()] * BUCKETS)}

    def disturbances(self):
        return []

    def floor_us(self, job, inputs):
        return None


def examined(program, cost_us):
    effort = dataclasses.replace(EFFORTS[Mode.VERIFY], plain_seeds=1, hidden_seeds=1, knock_out=False)
    timing = Schedule(effort.width, budget_s=0.01, min_pairs=effort.min_pairs, min_sample_us=0.0)
    found = Findings(
        task="1_019", size="cpu", device="cuda", mode=Mode.VERIFY, program_sha256="ab" * 32, own_kernel_share=1.0
    )
    job = Job(key=0, text="", task=catalog.get("1_019"))
    examine(Bench(program, cost_us), found, Examination(job, None, None, seed=3, effort=effort, timing=timing))
    return found


def relu(x, timed):
    return np.maximum(x, 0)


def test_the_same_time_on_any_contents_keeps_its_speedup():
    found = examined(relu, lambda x: 50.0)
    assert found.speedup == pytest.approx(2.0)
    assert found.notes == []


def test_a_program_that_is_fast_on_usual_draws_alone_is_scored_by_the_others():
    found = examined(relu, lambda x: 25.0 if x.min() >= 0 and x.max() <= 1 else 80.0)
    assert found.speedup == pytest.approx(1.25)
    assert "the speed-up over eager is that of case" in found.notes[0]


def test_a_program_that_is_wrong_in_timed_memory_on_hidden_cases_alone_is_seen():
    def program(x, timed):
        return np.maximum(x, 0) if not timed or x.min() >= 0 else x

    with pytest.raises(ProgramFault) as caught:
        examined(program, lambda x: 50.0)
    assert caught.value.fault.outcome is Outcome.WRONG_AFTER_TIMING
