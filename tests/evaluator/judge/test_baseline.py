"""Where plain programs are found, and that they are kept running."""

import dataclasses

import pytest

from evaluator.judge.baseline import PLAIN, kernels_folder, plain_text
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.tasks import catalog


def test_the_folder_of_a_checkout_is_found_and_holds_plain_programs():
    folder = kernels_folder()
    assert folder is not None
    assert plain_text("1_012") == (folder / "1_012" / PLAIN).read_text(encoding="utf-8")


@pytest.mark.parametrize("task_id", ["no_such_task", "../tests", "..", "", "1_012/plain.py"])
def test_a_task_without_a_plain_program_has_none(task_id):
    assert plain_text(task_id) is None


def test_sessions_are_kept_until_other_programs_need_the_room():
    texts = [plain_text("1_012") + "\n" * extra for extra in range(3)]  # three programs by their hash
    task = catalog.get("1_012")
    job = Job(None, "", task)
    with Judge(seed=5) as judge:
        judge._bench._baselines._buckets = 1
        inputs = judge._bench._oracle.expected(task, "cpu", "plain", 1)
        first = judge._bench._baselines.sessions(texts[0], job, inputs)
        assert judge._bench._baselines.sessions(texts[0], job, inputs) is first
        for text in texts[1:]:
            judge._bench._baselines.sessions(text, job, inputs)
        assert judge._bench._baselines.sessions(texts[0], job, inputs) is not first


def test_a_task_of_another_size_is_another_baseline():
    task = catalog.get("1_012")
    small = dataclasses.replace(
        task, sizes={"cpu": tuple(dataclasses.replace(a, shape=(7,) * len(a.shape)) for a in task.sizes["cpu"])}
    )
    with Judge(seed=5) as judge:
        judge._bench._baselines._buckets = 1
        for one in (task, small):
            inputs = judge._bench._oracle.expected(one, "cpu", "plain", 1)
            (session,) = judge._bench._baselines.sessions(plain_text("1_012"), Job(None, "", one), inputs)
            assert session.outputs()[0].shape == one.sizes["cpu"][1].shape
