"""Odd files and folders in the way of verdicts: nothing that was judged is lost, nothing hangs."""

import codecs
import os

import pytest

from evaluator.commands import command_line, verify
from evaluator.judge.text_file import read_program
from evaluator.judge.verdict_json import from_json
from evaluator.records import Outcome

REFUSED = "import os\n"


@pytest.fixture
def folder(tmp_path):
    programs = tmp_path / "programs" / "1_019"
    programs.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (programs / f"{name}.py").write_text(REFUSED + f"# {name}\n")
    return programs


def test_a_verdict_that_cannot_be_written_costs_no_other(folder, capsys):
    (folder / "b.cpu.json").mkdir()
    code = command_line.main(["verify", str(folder.parent), "--mode=quick", "--write"])
    out, err = capsys.readouterr()
    assert code == 3
    assert f"cannot write {folder / 'b.cpu.json'}: Is a directory" in err
    assert out.count("refused") >= 3
    for name in ("a", "c"):
        assert from_json((folder / f"{name}.cpu.json").read_text()).outcome is Outcome.REFUSED
    assert not [path for path in folder.iterdir() if "part" in path.name]


def test_what_was_judged_before_an_interruption_is_shown(folder, capsys, monkeypatch):
    class Interrupted(list):
        def append(self, row):
            super().append(row)
            if len(self) == 2:
                raise KeyboardInterrupt

    judge = verify._judge

    def judged_twice(jobs, options, stored, rows, unwritten):
        seen = Interrupted()
        try:
            judge(jobs, options, stored, seen, unwritten)
        finally:
            rows += seen

    monkeypatch.setattr(verify, "_judge", judged_twice)
    assert command_line.main(["verify", str(folder.parent), "--mode=quick"]) == 130
    out, err = capsys.readouterr()
    assert out.count("(screen)") == 2
    assert "2 of 3 judged" in err


def test_a_folder_that_is_named_like_a_program_is_left_out(folder, capsys):
    (folder / "d.py").mkdir()
    assert command_line.main(["verify", str(folder.parent), "--mode=quick"]) == 1
    assert "d.py" not in capsys.readouterr().out


def test_pipes_and_devices_are_no_programs(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    for path in (tmp_path / "pipe.py", type(tmp_path)("/dev/zero")):
        with pytest.raises(ValueError, match="is a pipe or a device: save the program as a file"):
            read_program(path)


def test_a_byte_order_mark_is_no_part_of_a_program(tmp_path):
    (tmp_path / "p.py").write_bytes(codecs.BOM_UTF8 + b"import cupy as cp\n")
    assert read_program(tmp_path / "p.py") == "import cupy as cp\n"


def test_a_file_that_is_no_utf8_is_refused_with_its_line(folder, capsys):
    (folder / "a.py").write_bytes(b"import cupy as cp\n# caf\xe9\n")
    assert command_line.main(["check", str(folder / "a.py"), "--task=1_019"]) == 1
    assert "line 2: the byte 0xe9 is not UTF-8; save the program as UTF-8" in capsys.readouterr().out


def test_verify_takes_several_folders_and_files_each_program_once(folder, capsys):
    paths = [folder.parent, folder, folder / "b.py"]
    assert command_line.main(["verify", *map(str, paths), "--mode=quick", "--json"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_summary_says_how_many_plain_programs_it_leaves_out(folder, capsys):
    (folder / "plain.py").write_text(REFUSED)
    assert command_line.main(["verify", str(folder), "--mode=quick"]) == 1
    assert "left out of the figures, as the others' baseline: 1 plain program\n0 of 3 ok" in capsys.readouterr().out
    assert command_line.main(["verify", str(folder / "plain.py"), "--mode=quick"]) == 1
    said = capsys.readouterr().out
    assert "0 of 1 ok" in said
    assert "left out" not in said
