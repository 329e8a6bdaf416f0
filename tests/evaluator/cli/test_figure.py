"""Plots of verdicts: what is drawn where."""

import contextlib
import dataclasses
import pathlib
import runpy

import numpy as np
import pytest

from evaluator.commands import command_line, judging, plot, verify
from evaluator.judge import doctor
from evaluator.judge.ending import WrongUse
from evaluator.records import Interval, Work

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from evaluator.commands import figure, roofline

MADE_UP = runpy.run_path(str(pathlib.Path(__file__).with_name("verdicts.py")))
verdict, wrong = MADE_UP["verdict"], MADE_UP["wrong"]
DISABLED = Work(10, 10)


def drawn_dots(axes):
    return [line.get_xydata() for line in axes.lines if line.get_marker() == "o"]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_each_speedup_of_a_few_programs_is_a_row_of_seven_dots():
    axes, roof = figure.draw([("k/1_019/a.py", verdict())]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1_019/a over eager", "1_019/a over graph"]
    eager, graph = drawn_dots(axes)
    assert eager == pytest.approx(np.stack([3 * np.array(MADE_UP["SPREAD"]), np.zeros(7)], axis=1))
    assert graph == pytest.approx(np.stack([2 * np.array(MADE_UP["SPREAD"]), np.ones(7)], axis=1))
    assert texts(axes) == ["3.00", "2.00"]
    low, high = axes.get_xlim()
    assert low < 1.0  # so that the line of no difference is there
    assert high > 3 * 1.03
    assert roof.get_ylabel() == "FLOP/s achieved"


def test_an_interval_without_an_end_is_drawn_as_far_as_an_axis_goes():
    endless = dataclasses.replace(verdict(), speedups={"graph": Interval(2.0, 0.0, float("inf"), (1.0, 2.0, 3.0))})
    axes = figure.draw([("a.py", endless)]).axes[0]
    assert np.isfinite(axes.get_xlim()).all()
    assert drawn_dots(axes)[0][:, 0] == pytest.approx([1.0, 2.0, 3.0])


def test_verdicts_without_buckets_still_have_their_interval():
    old = dataclasses.replace(verdict(), speedups={"graph": Interval(2.0, 1.9, 2.1)})
    axes = figure.draw([("a.py", old)]).axes[0]
    assert [len(dots) for dots in drawn_dots(axes)] == [0]
    assert len(axes.collections) == 1  # the bar


def test_many_programs_have_a_row_each_the_largest_first():
    rows = [(f"1_019/{i}.py", verdict((900.0, 100.0 * i))) for i in range(1, 7)]
    axes = figure.draw(rows).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"1_019/{i} over graph" for i in range(6, 0, -1)]
    assert len(drawn_dots(axes)) == 6


def test_a_roofline_has_the_peaks_and_each_program_below_them():
    memory_bound = dataclasses.replace(verdict(), work=Work(400_000_000, 10**8, 4.8e12, 67e12))
    computing = dataclasses.replace(verdict(), work=Work(4_000_000, 4 * 10**9, 4.8e12, 495e12))
    axes = figure.draw([("1_019/a.py", memory_bound), ("1_001/b.py", computing)]).axes[1]
    (points,) = drawn_dots(axes)
    assert points == pytest.approx(np.array([[0.25, 1e12], [1000.0, 4e13]]))
    roofs = [line.get_xydata() for line in axes.lines if line.get_marker() != "o"]
    assert [roof[1] for roof in roofs] == pytest.approx(np.array([[67 / 4.8, 67e12], [495 / 4.8, 495e12]]))
    assert [roof[0][1] / roof[0][0] for roof in roofs] == pytest.approx([4.8e12, 4.8e12])
    # 1e12 of 4.8e12 x 0.25; 4e13 of 495e12
    assert {"1_019/a 83%", "1_001/b 8%", "67 TFLOP/s", "495 TFLOP/s", "4.8 TB/s"} == set(texts(axes))


def test_a_program_beyond_the_roof_is_inside_the_picture():
    clever = dataclasses.replace(verdict(), work=Work(400, 10**12, 4.8e12, 67e12))
    axes = figure.draw([("a.py", clever)]).axes[1]
    assert axes.get_ylim()[1] > clever.achieved.flop_per_s


def test_without_known_peaks_there_is_no_roofline():
    for work in (None, DISABLED):
        assert len(figure.draw([("a.py", dataclasses.replace(verdict(), work=work))]).axes) == 1


@pytest.mark.parametrize("work", [Work(0, 10, 4.8e12, 67e12), Work(10, 0, 4.8e12, 67e12)])
def test_what_moves_or_computes_nothing_is_in_no_roofline(work):
    assert roofline.points_of([("a.py", dataclasses.replace(verdict(), work=work))]) == []


def test_the_title_counts_programs_without_a_speedup_and_the_emulator_is_named():
    title = figure.draw([("a.py", verdict()), ("b.py", wrong())]).get_suptitle()
    assert title == "2 programs on NVIDIA H200, size kb, mode quick; 1 without a speed-up"
    on_cpu = figure.draw([("a.py", verdict((200.0,), names=("plain",), device="cpu", work=False))])
    assert "says nothing of a GPU" in on_cpu.get_suptitle()


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_it_is_written_as_the_suffix_says(tmp_path, capsys, suffix, begins):
    path = tmp_path / f"a{suffix}"
    plot.require(path)
    plot.write(path, [("1_019/a.py", verdict())])
    content = path.read_bytes()
    assert content.startswith(begins)
    assert suffix == ".png" or b"1_019/a over graph" in content  # text, which can be searched
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize("name", [r"1_019/a$\foo$b.py", "1_019/a\udcff.py"])
def test_a_program_may_have_any_name(tmp_path, capsys, name):
    plot.write(tmp_path / "a.svg", [(name, verdict())])
    assert (tmp_path / "a.svg").exists(), capsys.readouterr().err


def test_a_folder_in_its_place_is_refused_before_any_work(tmp_path):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(WrongUse, match="cannot be written to; name another file"):
        plot.require(tmp_path / "a.png")


def test_a_picture_that_fails_costs_no_verdict(tmp_path, capsys):
    plot.write(tmp_path / "gone" / "a.png", [("b.py", verdict())])
    assert "a.png is not drawn: FileNotFoundError" in capsys.readouterr().err


def test_nothing_timed_is_said_and_nothing_written(tmp_path, capsys):
    path = tmp_path / "a.png"
    plot.write(path, [("b.py", wrong())])
    assert not path.exists()
    assert "nothing was timed" in capsys.readouterr().err


class Judge:
    def check(self, *_, timing=True, plain=None, **__):
        return verdict((200.0,), names=("plain",), device="cpu", work=False)


class Pool:
    """Judges nothing: each job has the same verdict."""

    def __init__(self, *_):
        self.jobs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, job):
        self.jobs.append(job)

    def completed(self):
        return [(job, Judge().check()) for job in self.jobs]


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        (("check", "1_019/a.py", "--task=1_019"), 1),
        (("compare", "1_019/a.py", "1_019/b.py", "--task=1_019"), 2),
        (("verify", "."), 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_every_judging_command_draws_what_it_judged(tmp_path, monkeypatch, capsys, command, rows):
    (tmp_path / "1_019").mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "1_019" / name).write_text("text")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "missing_for", lambda *_: None)
    monkeypatch.setattr(judging, "make_judge", lambda options: contextlib.nullcontext(Judge()))
    monkeypatch.setattr(verify, "LocalPool", Pool)
    assert command_line.main([*command, "--plot=out.svg"]) == 0
    assert (tmp_path / "out.svg").read_text().count("over plain") == rows
    assert "drawn: out.svg" in capsys.readouterr().err
