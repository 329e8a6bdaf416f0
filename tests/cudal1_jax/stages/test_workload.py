import re

import pytest

from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import workload


@pytest.fixture
def kernels(tmp_path):
    for task, words in {"1_019": 10, "1_020": 10, "1_023": 30, "1_039": 30, "2_012": 10}.items():
        (tmp_path / task).mkdir()
        (tmp_path / task / "plain.py").write_text("word " * words)
        (tmp_path / task / "notes.md").write_text("no program")
    (tmp_path / "1_019" / "wide.py").write_text("wide")
    return tmp_path


def count(text):
    return len(text.split())


def test_short_tasks_are_those_of_the_level_whose_plain_program_is_short(kernels):
    every = ("elementwise", "rowwise", "chain")
    assert list(workload.short_tasks(1, every, 30, kernels, count)) == ["1_020", "1_039"]
    assert list(workload.short_tasks(1, every, 29, kernels, count)) == ["1_020"]
    assert list(workload.short_tasks(2, every, 29, kernels, count)) == ["2_012"]
    assert list(workload.short_tasks(1, ("rowwise",), 30, kernels, count)) == ["1_039"]


def test_a_held_out_task_is_worked_on_only_where_it_is_named(kernels):
    assert "1_019" not in workload.short_tasks(1, ("elementwise",), 30, kernels, count)
    assert list(workload.named_tasks(["1_019"], kernels)) == ["1_019"]


def test_a_level_without_short_tasks_says_which_values_to_change(kernels):
    with pytest.raises(RunError, match=r"of elementwise .* at most 5 tokens .* raise config.task_plain_tokens"):
        workload.short_tasks(1, ("elementwise",), 5, kernels, count)


def test_an_unknown_task_is_refused_with_close_ids(kernels):
    with pytest.raises(RunError, match=re.escape("config.tasks: no task '1_19'; close ids: 1_019")):
        workload.named_tasks(["1_019", "1_19"], kernels)


def test_a_task_without_a_plain_program_is_refused_with_the_file_to_write(kernels):
    with pytest.raises(RunError, match=r"no plain program to measure against for 1_040: .*1_040/plain.py"):
        workload.named_tasks(["1_019", "1_040"], kernels)


def test_seeds_are_the_programs_of_the_tasks_by_task_and_name(kernels):
    found = workload.seeds(["1_023", "1_019"], kernels)
    assert [(seed.task, seed.name) for seed in found] == [
        ("1_019", "plain.py"),
        ("1_019", "wide.py"),
        ("1_023", "plain.py"),
    ]


@pytest.mark.parametrize("prompts", [1, 2, 3])
def test_a_schedule_comes_to_every_task_once_before_it_comes_to_one_again(prompts):
    tasks = ["a", "b", "c", "d", "e"]
    rows = workload.schedule(tasks, iterations=10, prompts=prompts, seed=3)
    assert [len(row) for row in rows] == [prompts] * 10
    order = [task for row in rows for task in row]
    for start in range(0, len(order) - 4, 5):
        assert sorted(order[start : start + 5]) == tasks


def test_a_longer_schedule_begins_like_a_shorter_one():
    short, long = (workload.schedule(["a", "b", "c"], iterations=n, prompts=1, seed=0) for n in (2, 7))
    assert long[:2] == short
