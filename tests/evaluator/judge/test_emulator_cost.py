"""What judging costs on the emulator, said before it begins."""

import pytest

from evaluator.commands import command_line, judging
from evaluator.judge.emulator_cost import refusal, warning
from evaluator.records import Limits
from evaluator.tasks import catalog

LIMITS = Limits.for_device("cpu")


def test_arrays_that_exceed_a_programs_memory_are_refused_with_figures_and_cure():
    # relu, 4096 x 393216: 2 x 4 x 1.61e9 bytes
    said = refusal(catalog.get("1_019"), "kb", LIMITS)
    assert said.startswith("inputs and outputs of task 1_019 at size kb take 12.9 GB, and on the emulator a program")
    assert "--device=cuda" in said


def test_a_size_that_takes_minutes_is_a_warning():
    # a product of 4096 x 4096 matrices: 2 x 4096^3 operations of 2 ns
    assert refusal(catalog.get("1_001"), "kb", LIMITS) is None
    said = warning(catalog.get("1_001"), "kb", LIMITS)
    assert "about 5 min a run; a verdict needs 100 or more, and one of more than 10 s of CPU is a `timeout`" in said


def test_seconds_without_a_timeout_are_a_shorter_warning():
    said = warning(catalog.get("1_088"), "kb", LIMITS)
    assert "about 1.1 s a run; a verdict needs 100 or more:" in said


LARGE = {"3_029", "3_030"}  # their windows of seven fit no smaller image


@pytest.mark.parametrize("task", [x for x in catalog.TASKS.values() if x.id not in LARGE], ids=lambda task: task.id)
def test_no_task_needs_a_word_at_the_emulators_size(task):
    assert refusal(task, "cpu", LIMITS) is None
    assert warning(task, "cpu", LIMITS) is None


def test_the_warning_comes_before_the_work(monkeypatch, capsys, tmp_path):
    class Began(Exception):
        pass

    def begin(options):
        assert "task 1_088 at size kb takes the emulator about" in capsys.readouterr().err
        raise Began

    monkeypatch.setattr(judging, "make_judge", begin)
    program = tmp_path / "p.py"
    program.write_text("import cupy as cp\n")
    assert command_line.main(["check", str(program), "--task=1_088", "--size=kb"]) == 3
    assert "Began" in capsys.readouterr().err
