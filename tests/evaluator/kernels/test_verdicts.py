"""Recorded verdicts belong to the programs they lie beside, and say what kernels/ promises."""

import pathlib

import pytest

from evaluator.judge.verdict_json import from_json
from evaluator.program.identity import sha256
from evaluator.records import Outcome

FOLDER = pathlib.Path(__file__).parents[3] / "kernels"
PROGRAMS = sorted(FOLDER.glob("*/*.py"))
IMPROVED_ON_CPU = ["1_001", "1_004", "1_012", "1_019", "1_023", "1_026", "1_040", "1_051", "1_094", "2_014"]
TASKS = sorted({path.parent.name for path in PROGRAMS})


def named(path):
    return f"{path.parent.name}/{path.name}"


def verdict_of(path):
    return from_json(path.with_suffix(".cpu.json").read_text())


@pytest.mark.parametrize("path", PROGRAMS, ids=named)
def test_a_verdict_is_of_its_program_as_it_stands(path):
    verdict = verdict_of(path)
    assert verdict.program_sha256 == sha256(path.read_text())
    assert (verdict.task, verdict.device, verdict.size) == (path.parent.name, "cpu", "cpu")


@pytest.mark.parametrize("path", PROGRAMS, ids=named)
def test_every_program_is_ok(path):
    assert verdict_of(path).outcome is Outcome.OK


@pytest.mark.parametrize("task_id", IMPROVED_ON_CPU)
def test_the_emulator_too_sees_what_the_best_program_of_these_tasks_gains(task_id):
    """So that a run without a GPU has something to learn; most faster programs use what an emulator cannot show."""
    better = [path for path in PROGRAMS if path.parent.name == task_id and path.name != "plain.py"]
    best = max((verdict_of(path).speedups["plain"] for path in better), key=lambda speedup: speedup.value)
    assert best.value >= 1.2
    assert best.low > 1.1


@pytest.mark.parametrize("task_id", TASKS)
def test_a_plain_program_takes_milliseconds(task_id):
    """Long enough to be timed, short enough to be judged often; recorded times, on the machine that judged."""
    assert 2_000 <= verdict_of(FOLDER / task_id / "plain.py").times["program"].value <= 50_000
