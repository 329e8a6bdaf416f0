"""The main job's limits against the real tokenizer and the real programs."""

import pytest

from cudal1_jax.contrastive import prompt
from cudal1_jax.contrastive.exemplars import Exemplar
from cudal1_jax.policy import tokenizer
from cudal1_jax.stages import setup, workload
from evaluator.records import Interval
from evaluator.tasks import catalog

INTERVAL = Interval(1.83, 1.79, 1.88)


@pytest.fixture(scope="module")
def count():
    loaded = tokenizer.load()
    return lambda text: len(loaded.encode(text))


@pytest.fixture(scope="module")
def tasks(count):
    return workload.short_tasks(1, {task.family for task in catalog.TASKS.values()}, 450, setup.kernels(), count)


def test_the_fixed_instructions_are_short(count, tasks):
    task = tasks["1_020"]
    bare = count(prompt.render(task, "cpu", [], "cpu")) - count(task.source)
    assert bare <= 170


def test_two_plain_programs_fit_a_request_of_every_default_task(count, tasks):
    assert len(tasks) >= 11
    for name, task in tasks.items():
        plain = (setup.kernels() / name / "plain.py").read_text()
        shown = [Exemplar(plain, INTERVAL), Exemplar(plain, INTERVAL)]
        assert count(prompt.render(task, "cpu", shown, "cpu")) <= 1536 - 40, name  # 40: the chat template


def test_headings_of_a_completion_leave_room_for_a_program(count):
    assert count(prompt.completion("a", "b", "c")) <= 40
