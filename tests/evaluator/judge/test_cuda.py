"""The ladder on a GPU: bad programs get the outcome in their name there too, honest ones a score over two baselines."""

import os
import re
import signal
from pathlib import Path

import pytest

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.ladder import Judge
from evaluator.judge.table import block
from evaluator.judge.text_file import read_program
from evaluator.records import Limits, Mode, Outcome
from evaluator.tasks import catalog

pytestmark = pytest.mark.gpu

# What only the emulator can tell: it orders threads and checks barriers; a GPU runs what the emulator cannot.
EMULATOR_ONLY = {Outcome.BAD_BARRIER, Outcome.NONDETERMINISTIC, Outcome.UNSUPPORTED}
CANDIDATES = sorted((Path(__file__).parents[2] / "candidates").glob("*.py"))


def outcomes_of(path):
    """What a GPU may say: by the line `# on a GPU: a or b: why`, or as the file is named. Empty: it cannot tell."""
    told = re.search(r"^# on a GPU: ([^:\n]*)", read_program(path), re.MULTILINE)
    if told:
        return {Outcome(name) for name in told[1].split(" or ")}
    return {Outcome(path.stem.partition("__")[0])} - EMULATOR_ONLY


HONEST = sorted(kernels_folder().glob("*/*.py"))
IMPATIENT = Limits(trace_s=2.0, compile_s=2.0, kernel_s=2.0)


@pytest.fixture(scope="module")
def judge():
    with Judge("cuda", mode=Mode.QUICK, seed=2024, limits=IMPATIENT) as started:
        yield started


def task_of(text):
    first = text.partition("\n")[0]
    return catalog.get(first.removeprefix("# task: ").strip() if first.startswith("# task: ") else "1_019")


@pytest.mark.parametrize("path", [path for path in CANDIDATES if outcomes_of(path)], ids=lambda path: path.stem)
def test_a_program_gets_an_outcome_that_it_may_have_on_a_gpu(path, judge):
    text, expected = read_program(path), outcomes_of(path)
    verdict = judge.check(text, task_of(text), timing=Outcome.WRONG_AFTER_TIMING in expected)
    assert verdict.outcome in expected, block(path.name, verdict)


@pytest.mark.parametrize("path", HONEST, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_honest_program_is_ok(path, judge):
    verdict = judge.check(read_program(path), catalog.get(path.parent.name), timing=path.stem == "plain")
    assert verdict.ok, block(str(path), verdict)
    if path.stem == "plain":
        assert set(verdict.speedups) == {"eager", "graph"}
        assert verdict.speedup is not None
        assert verdict.compiler["registers"] > 0


def test_a_process_lost_between_two_programs_costs_no_verdict(judge):
    path = kernels_folder() / "1_019" / "plain.py"
    assert judge.check(read_program(path), catalog.get("1_019"), timing=False).ok
    os.kill(judge._bench._child.pid, signal.SIGKILL)
    assert judge.check(read_program(path), catalog.get("1_019"), timing=False).ok
