"""What is called must be what was judged: text, task, device and outcome."""

import dataclasses
import pathlib
import shutil

import pytest

from evaluator.calling.source import Unverified, find
from evaluator.judge.baseline import kernels_folder
from evaluator.judge.verdict_json import to_json
from evaluator.records import Outcome

from .conftest import ROW_SUMS, TASKS, verdict_on


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A program of the library with its verdict on the emulator, in a folder of the test's own."""
    (tmp_path / "1_019").mkdir()
    for name in ("plain.py", "plain.cpu.json"):
        shutil.copy(kernels_folder() / "1_019" / name, tmp_path / "1_019")
    return tmp_path / "1_019" / "plain.py"


def test_a_path_names_task_and_verdict(copy):
    source = find(copy, device="cpu")
    assert source.task.id == "1_019"
    assert [(array.argument, array.shape) for array in source.verified] == [("x", (100, 16400))]
    assert source.text == copy.read_text()


def test_the_library_is_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find("kernels/1_019/plain.py", device="cpu").task.id == "1_019"


def test_a_changed_text_is_not_the_one_that_was_judged(copy):
    copy.write_text(copy.read_text().replace("256", "128"))
    with pytest.raises(Unverified, match=r"its text \(sha256 [0-9a-f]{12}\) is not the one that was judged"):
        find(copy, device="cpu")
    assert find(copy, device="cpu", allow_unverified=True).verified is None


def test_line_ends_do_not_change_a_text(copy):
    copy.write_bytes(copy.read_bytes().replace(b"\n", b"\r\n"))
    assert find(copy, device="cpu").verified is not None


def test_a_verdict_of_one_device_says_nothing_of_another(copy):
    with pytest.raises(Unverified, match=r"no verdict .*plain.cuda.json: `python -m evaluator verify .* --device=cuda"):
        find(copy, device="cuda")
    with pytest.raises(Unverified, match="of device cpu, and it is to run on cuda"):
        find(copy, device="cuda", verdict=copy.with_suffix(".cpu.json"))


def test_a_verdict_may_lie_elsewhere(copy, tmp_path):
    elsewhere = tmp_path / "verdict.json"
    elsewhere.write_text(to_json(verdict_on("row_sums")) + "\n")
    source = find(ROW_SUMS, task=TASKS["row_sums"], device="cpu", verdict=elsewhere)
    assert source.verified == TASKS["row_sums"].arrays_at("cpu")


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"outcome": Outcome.WRONG_VALUE}, "its verdict is wrong_value, not ok"),
        ({"task": "1_020"}, "its verdict is on task 1_020, not row_sums"),
        ({"program_sha256": "0" * 64}, r"not the one that was judged \(000000000000\)"),
    ],
)
def test_a_verdict_that_is_about_something_else_is_refused(changes, seen):
    verdict = dataclasses.replace(verdict_on("row_sums"), **changes)
    with pytest.raises(Unverified, match=seen):
        find(ROW_SUMS, task=TASKS["row_sums"], device="cpu", verdict=verdict)


def test_a_text_has_no_verdict_of_its_own():
    with pytest.raises(Unverified, match="a program for row_sums comes without a verdict"):
        find(ROW_SUMS, task=TASKS["row_sums"], device="cpu")


def test_a_text_must_say_its_task():
    with pytest.raises(ValueError, match="a program's text names no task: pass task="):
        find(ROW_SUMS, device="cpu")


def test_a_folder_that_is_no_task_is_no_hint(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(ROW_SUMS)
    with pytest.raises(ValueError, match="lies in no folder named after a task"):
        find(path, device="cpu")


@pytest.mark.parametrize(
    ("program", "device", "error", "seen"),
    [
        ("kernels/1_019/nothing.py", "cpu", ValueError, "cannot read .*nothing.py: No such file"),
        ("kernels/1_019/plain.py", "gpu", ValueError, "no device 'gpu'; choose one of cpu, cuda"),
    ],
)
def test_what_cannot_be_found_says_so(program, device, error, seen):
    with pytest.raises(error, match=seen):
        find(program, device=device)


def test_an_unknown_task_names_close_ones():
    with pytest.raises(KeyError, match="no task '1_0199'; close ids: "):
        find("kernels/1_019/plain.py", task="1_0199", device="cpu")
