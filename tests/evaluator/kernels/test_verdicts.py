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

RECORDED_ON_CUDA = [path for path in PROGRAMS if path.with_suffix(".cuda.json").exists()]
COMPLETE_ON_CUDA = [
    task for task in TASKS if all(path in RECORDED_ON_CUDA for path in PROGRAMS if path.parent.name == task)
]
# Tasks in which no program reaches 1.2, since the reference already moves its bytes as fast as the memory lets anyone.
STREAMING = {"1_012", "1_019", "1_020", "1_021", "1_022", "1_026", "1_027", "1_028", "1_029", "1_031", "1_032", "1_045"}
STREAMING |= {"1_033", "1_047", "1_048", "1_049", "1_051", "1_052", "1_053", "1_089", "1_090"}
READ_TWICE = {"1_023", "1_024", "1_034", "1_035", "1_037"}  # rows longer than a block keeps, read twice


def named(path):
    return f"{path.parent.name}/{path.name}"


def verdict_of(path, device="cpu"):
    return from_json(path.with_suffix(f".{device}.json").read_text())


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


@pytest.mark.parametrize("path", RECORDED_ON_CUDA, ids=named)
def test_a_verdict_from_a_gpu_is_of_its_program_as_it_stands_and_ok(path):
    verdict = verdict_of(path, "cuda")
    assert verdict.program_sha256 == sha256(path.read_text())
    assert (verdict.task, verdict.device, verdict.size) == (path.parent.name, "cuda", "kb")
    assert verdict.outcome is Outcome.OK
    assert set(verdict.speedups) == {"eager", "graph"}


@pytest.mark.parametrize("task_id", COMPLETE_ON_CUDA)
def test_the_best_program_of_a_task_gains_a_fifth_on_a_gpu_unless_nobody_can(task_id):
    verdicts = [verdict_of(path, "cuda") for path in PROGRAMS if path.parent.name == task_id]
    best = max((min(v.speedups.values(), key=lambda s: s.value) for v in verdicts), key=lambda s: s.value)
    gains = best.value >= 1.2 and best.low > 1.1
    assert gains != (task_id in STREAMING | READ_TWICE)
