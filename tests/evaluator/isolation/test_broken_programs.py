"""What a broken program does to the process that runs it is over when its verdict is there: the next one is judged."""

import os
import pathlib

import pytest

from evaluator.judge.ladder import Judge
from evaluator.records import Limits, Outcome, Rung
from evaluator.tasks.task import Array, Task

HERE = pathlib.Path(__file__).parent
RELU = "def forward(nn, x):\n    return nn.relu(x)\n"
TASK = Task(id="relu", name="relu", family="elementwise", source=RELU, sizes={"cpu": (Array("x", (37, 65)),)})
HOW = ["endless", "illegal access", "null pointer", "trap", "no memory", "deep recursion", "misaligned"]


@pytest.fixture(scope="module")
def modules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import broken_programs
        import doomed_judge

        return broken_programs, doomed_judge


@pytest.fixture(scope="module")
def judge(modules):
    processes = modules[1]
    others = set(processes.descendants(os.getpid()))  # of earlier tests
    with Judge(limits=Limits(kernel_s=0.5)) as judge:
        yield judge
    assert not any(map(processes.alive, set(processes.descendants(os.getpid())) - others))


def check(judge, text):
    return judge.check(text, TASK, timing=False, cases=("negated",))


@pytest.mark.parametrize("how", HOW)
def test_a_broken_program_has_its_outcome_and_the_next_is_judged(judge, modules, how):
    programs, processes = modules
    assert set(programs.BROKEN) == set(HOW)
    assert check(judge, programs.HONEST).ok
    before = sorted(processes.descendants(os.getpid()))
    broken, outcomes = check(judge, programs.broken(how)), programs.BROKEN[how][1]
    assert broken.rung in (Rung.MEMORY_SAFETY, Rung.CORRECTNESS), broken.message
    assert broken.outcome in (outcomes or {Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_BOUNDS})
    assert check(judge, programs.HONEST).ok
    assert len(processes.descendants(os.getpid())) <= len(before)
