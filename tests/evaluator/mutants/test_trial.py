"""Trials: how far each mutant comes, and what a worker answers."""

import dataclasses
import types

import pytest

from evaluator.mutants import trying_process
from evaluator.mutants.derive import Mutant
from evaluator.mutants.trial import Original, Settings, State, Trials
from evaluator.mutants.trying_process import Batch
from evaluator.records import Outcome
from evaluator.tasks.task import Array, Task

TASK = Task(
    id="relu",
    name="relu",
    family="elementwise",
    source="def forward(nn, x):\n    return nn.relu(x)\n",
    sizes={"cpu": (Array("x", (10, 420)),)},
)
RELU = '''import cupy as cp

source = r"""
extern "C" __global__ void relu(const float* x, float* out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) {
    float v = x[i];
    out[i] = v < 0.0f ? 0.0f : v;
  }
}
"""
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
'''
CHANGES = {
    "same": ("if (i < size)", "if (i + 0 < size)"),
    "refused": ("float v", "flout v"),
    "zero": ("v < 0.0f ?", "v <= 0.0f ?"),  # the same values
    "crude": ("v < 0.0f", "v < 0.01f"),
    # Where sixteen neighbours agree on a value that is no half and no integer, no case of the judge looks.
    "hidden": (
        "out[i] = v",
        "out[i] = i + 16 < size && x[i + 16] == v && x[i + 8] == v && rintf(2.0f * v) != 2.0f * v ? 0.1f : v",
    ),
}

pytestmark = pytest.mark.filterwarnings("ignore:.*landlock.*:RuntimeWarning")


def mutant(name):
    before, after = CHANGES[name]
    assert RELU.count(before) == 1
    return Mutant(name, "relu.py", "relu", "by hand", 1, before, after, RELU.replace(before, after))


@pytest.fixture(scope="module")
def trials():
    with Trials(Settings(draws=20)) as started:
        yield started


def test_states_of_mutants_and_one_that_only_the_search_exposes(trials):
    found = {trial.id: trial for trial in trials.attempt(RELU, TASK, [mutant(name) for name in CHANGES])}
    assert (found["same"].state, found["same"].outcome) == (State.SAME_CODE, None)
    assert (found["refused"].state, found["refused"].outcome) == (State.REFUSED, Outcome.COMPILE_ERROR)
    assert (found["zero"].state, found["zero"].exposed, found["zero"].caught) == (State.TRIED, False, False)
    assert (found["crude"].caught, found["crude"].exposed) == (True, True)
    hidden = found["hidden"]
    assert (hidden.outcome, hidden.exposed, hidden.caught) == (Outcome.OK, True, False)
    assert hidden.exposure.distribution == "plateaus"


def test_where_the_judge_fails_on_one_mutant_the_others_have_their_trials(trials, monkeypatch):
    check = trials._judge.check

    def failing(text, *arguments, **options):
        verdict = check(text, *arguments, **options)
        return dataclasses.replace(verdict, outcome=Outcome.EVALUATOR_ERROR) if "0.01f" in text else verdict

    monkeypatch.setattr(trials._judge, "check", failing)
    attempted = trials.attempt(RELU, TASK, [mutant("crude"), mutant("zero")])
    assert next(attempted).id == "zero"
    with pytest.raises(RuntimeError, match="the judge failed: mutant crude"):
        next(attempted)


def test_a_program_is_examined_and_judged_before_its_mutants_are(trials):
    seen = trials.examine("relu.py", RELU, TASK)
    assert (seen.program, seen.fault) == ("relu.py", None)
    assert 0 < seen.run_ms < 1000
    assert trials.fault_of(RELU, TASK) is None
    assert trials.fault_of(mutant("crude").text, TASK).startswith("wrong_value: ")
    assert trials.examine("relu.py", mutant("refused").text, TASK).fault.startswith("compile_error: ")


def test_mutants_of_a_wrong_program_are_not_tried_and_it_is_judged_once():
    judged = []
    wrong = types.SimpleNamespace(
        examine=lambda program, text, task: Original(program, "digest", 1.0, None),
        fault_of=lambda text, task: judged.append(text) or "wrong_value: seen 1",
    )
    batch, known = Batch("relu.py", RELU, TASK, (mutant("crude"),)), {}
    for _ in range(2):
        (record,) = trying_process._records(wrong, batch, known)
        assert record == Original("relu.py", "digest", 1.0, "wrong_value: seen 1")
    assert judged == [RELU]
