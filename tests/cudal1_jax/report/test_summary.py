import dataclasses
import json

import pytest

from cudal1_jax.contrastive.records import SEED_STEP, Judged
from cudal1_jax.report import summary
from cudal1_jax.report.run_directory import RunDirectory, RunError
from evaluator.records import Outcome


@pytest.fixture
def judged(verdict):
    rows = [  # step, task, program, speed-up, outcome
        (SEED_STEP, "1_019", "plain", 1.0, Outcome.OK),
        (SEED_STEP, "1_023", "seed", 1.5, Outcome.OK),
        (0, "1_019", "better", 2.0, Outcome.OK),
        (0, "1_019", "wrong", None, Outcome.WRONG_VALUE),
        (1, "1_023", "slower", 0.8, Outcome.OK),
        (1, "1_023", "seed", 1.4, Outcome.OK),
    ]
    return [
        Judged(step, n, task, text, "", verdict(text, speedup, outcome, task=task))
        for n, (step, task, text, speedup, outcome) in enumerate(rows)
    ]


@pytest.fixture
def result(judged, tmp_path):
    return summary.summarise(
        judged,
        [False, False, True, True, True, False],
        ["1_019", "1_023", "1_040"],
        RunDirectory(tmp_path),
        config="crl",
        device="cpu",
        size="cpu",
        iterations=2,
        seconds=61.26,
    )


def test_figures_match_those_worked_by_hand(result):
    assert (result.samples, result.ok, result.success_rate) == (4, 3, 0.75)
    assert result.novel_ok == 2  # "wrong" is new and does not count
    # best 2.0, 1.4 and a miss: (2.0 x 1.4 x 1)^(1/3); "seed" was measured at 1.5 and 1.4, and the lower median counts
    assert result.geomean_speedup == pytest.approx(2.8 ** (1 / 3))


def test_each_task_has_its_best_program_and_where_it_came_from(result, tmp_path):
    first, second, third = result.tasks
    assert (first.task, first.best_speedup, first.source, first.success_rate) == ("1_019", 2.0, "policy", 0.5)
    assert (first.low, first.high) == pytest.approx((1.96, 2.04))
    assert (second.best_speedup, second.source, second.success_rate) == (1.4, "seed", 1.0)
    assert (third.best_speedup, third.source, third.success_rate, third.program) == (None, None, None, None)
    assert first.program == str(tmp_path / "programs" / "1_019.py")


def test_saving_writes_programs_and_the_documented_object(result, judged, tmp_path):
    directory = RunDirectory(tmp_path)
    summary.save(directory, result, judged)
    assert (directory.programs / "1_019.py").read_text() == "better"
    assert (directory.programs / "1_023.py").read_text() == "seed"
    fields = json.loads(directory.summary.read_text())
    assert list(fields) == [
        "config", "device", "size", "iterations", "seconds", "samples", "ok", "success_rate", "novel_ok",
        "geomean_speedup", "tasks",
    ]  # fmt: skip
    assert list(fields["tasks"][0]) == [
        "task", "best_speedup", "low", "high", "success_rate", "program", "source", "device_name",
    ]  # fmt: skip
    assert summary.load(directory) == result
    assert directory.is_finished()


def test_the_table_shows_intervals_and_says_that_an_emulator_is_no_gpu(result):
    text = summary.table(result)
    assert "2.00" in text
    assert "1.96 to 2.04" in text
    assert "they say nothing of a GPU" in text
    assert "75% of 4 samples" in text


def test_tasks_of_two_devices_are_told_apart(judged, result, tmp_path):
    assert "different devices" not in summary.table(result)
    placed = [
        dataclasses.replace(
            entry, verdict=dataclasses.replace(entry.verdict, device_name="L4" if entry.task == "1_023" else "H200")
        )
        for entry in judged
    ]
    fields = {"config": "crl", "device": "cuda", "size": "kb", "iterations": 1, "seconds": 1.0}
    tasks = ["1_019", "1_023", "1_040"]
    mixed = summary.summarise(placed, [False] * len(placed), tasks, RunDirectory(tmp_path), **fields)
    assert [task.device_name for task in mixed.tasks] == ["H200", "L4", ""]
    lines = summary.table(mixed).splitlines()
    assert lines[-3].startswith("Tasks were judged on different devices")
    assert lines[-2:] == ["  H200: 1_019", "  L4: 1_023"]


def test_a_run_without_samples_has_no_rate(tmp_path):
    empty = summary.summarise(
        [], [], ["1_019"], RunDirectory(tmp_path), config="c", device="cpu", size="cpu", iterations=0, seconds=0.0
    )
    assert (empty.success_rate, empty.geomean_speedup, empty.novel_ok) == (None, 1.0, 0)
    assert "no sample" in summary.table(empty)


def test_a_damaged_summary_says_how_to_write_it_anew(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.summary.write_text('{"config": "crl"}')
    with pytest.raises(RunError, match=r"is damaged .*: remove it and give the same command again"):
        summary.load(directory)
