"""`compare` on a GPU, by a judge that is made up: what is timed against what, and what is shown of it."""

import contextlib
import json
import pathlib
import runpy

import pytest

from evaluator.commands import command_line, judging
from evaluator.judge import doctor
from evaluator.records import Fault, Outcome, Rung

MADE_UP = runpy.run_path(str(pathlib.Path(__file__).with_name("verdicts.py")))
verdict, wrong = MADE_UP["verdict"], MADE_UP["wrong"]


class Judge:
    """Answers in order, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def check(self, text, task, size, *, timing=True, plain=None):
        self.asked.append((text, timing, plain))
        return self.answers.pop(0)


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.py").write_text("first")
    (tmp_path / "b.py").write_text("second")
    monkeypatch.setattr(doctor, "missing_for", lambda *_: None)

    def run(judge, *arguments):
        monkeypatch.setattr(judging, "make_judge", lambda options: contextlib.nullcontext(judge))
        paths = [str(tmp_path / "a.py"), str(tmp_path / "b.py")]
        code = command_line.main(["compare", *paths, "--task=1_019", "--device=cuda", *arguments])
        return code, *capsys.readouterr()

    return run


def against_a(**keywords):
    return verdict((150.0,), names=("plain",), **keywords)


def test_both_have_theirs_over_eager_and_graph_beside_the_paired_ratio(compare):
    judge = Judge(verdict(program_us=150.0), verdict(), against_a())
    code, out, err = compare(judge)
    assert code == 0
    assert judge.asked == [("first", True, None), ("second", True, None), ("second", True, "first")]
    first, second = out.split("b.py: ok")
    assert "speed-up over eager: 2.000" in first
    assert "speed-up over graph: 1.333" in first
    assert "over plain" not in first
    assert "speed-up over eager: 3.000" in second
    assert "speed-up over graph: 2.000" in second
    assert "speed-up over plain: 1.500" in second
    assert "b.py is 1.500 times as fast as" in err


def test_json_has_one_line_a_program_with_all_that_it_was_timed_against(compare):
    code, out, _ = compare(Judge(verdict(program_us=150.0), verdict(), against_a()), "--json")
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert list(first["speedups"]) == ["eager", "graph"]
    assert list(second["speedups"]) == ["eager", "graph", "plain"]
    assert set(second["times"]) == {"program", "eager", "graph", "plain"}
    assert second["speedup"] == 1.5  # the smallest: 2.0 without the first program
    assert second["rung_ms"]["timing"] == 10.0


@pytest.mark.parametrize(
    ("answers", "code", "asked"),
    [([wrong()], 1, 1), ([verdict(), wrong()], 1, 2), ([verdict(), verdict(), wrong()], 1, 3)],
)
def test_a_fault_ends_it_and_is_what_is_said(compare, answers, code, asked):
    judge = Judge(*answers)
    seen, out, err = compare(judge)
    assert (seen, len(judge.asked)) == (code, asked)
    assert "wrong_value (correctness)" in out
    assert "times as fast" not in err


def test_times_that_are_too_noisy_are_undecided(compare):
    noisy = against_a(fault=Fault(Outcome.UNSTABLE_TIMING, Rung.TIMING, "7 % wide"))
    assert compare(Judge(verdict(), verdict(), noisy))[0] == 4
