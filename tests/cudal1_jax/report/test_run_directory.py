import json

import pytest

from cudal1_jax.report.run_directory import RunError, RunLock, flatten, open_run, set_aside
from evaluator.whole_file import write_whole

CONFIG = {"iterations": 5, "rollout": {"group": 8, "tasks": ("1_019",)}, "name": "crl"}


def test_the_same_config_continues_a_run(tmp_path):
    open_run(tmp_path / "r", CONFIG)
    directory = open_run(tmp_path / "r", CONFIG)
    assert json.loads(directory.config.read_text())["rollout"] == {"group": 8, "tasks": ["1_019"]}
    assert not directory.is_finished()


def test_a_changed_config_is_refused_with_the_keys_that_differ(tmp_path):
    open_run(tmp_path / "r", CONFIG)
    with pytest.raises(RunError) as error:
        open_run(tmp_path / "r", {"iterations": 5, "rollout": {"group": 4, "tasks": ("1_019",)}, "size": "cpu"})
    text = str(error.value)
    assert "rollout.group: 8 -> 4" in text
    assert "name: 'crl' -> 'absent'" in text
    assert "size: 'absent' -> 'cpu'" in text
    assert "iterations" not in text
    assert "--fresh" in text


def test_a_damaged_config_is_refused_with_advice(tmp_path):
    open_run(tmp_path / "r", CONFIG).config.write_text("{")
    with pytest.raises(RunError, match="is not readable JSON"):
        open_run(tmp_path / "r", CONFIG)


def test_earlier_runs_are_set_aside_and_never_deleted(tmp_path):
    for expected in ("r.1", "r.2"):
        (tmp_path / "r").mkdir()
        assert set_aside(tmp_path / "r") == tmp_path / expected
    assert set_aside(tmp_path / "r") is None


def test_two_processes_cannot_work_on_one_run(tmp_path):
    with RunLock(tmp_path), pytest.raises(RunError, match="another process works on run"):
        RunLock(tmp_path)
    RunLock(tmp_path).__exit__()


def test_a_failed_write_leaves_the_old_text(tmp_path):
    path = tmp_path / "summary.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"


def test_flatten_joins_keys_with_dots():
    assert flatten({"a": {"b": {"c": 1}}, "d": {}}) == {"a.b.c": 1}
