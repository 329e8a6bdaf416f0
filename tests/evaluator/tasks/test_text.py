"""What prompts and the command line show of a task."""

import pytest

from evaluator.tasks import catalog
from evaluator.tasks.notation import forward_text
from evaluator.tasks.text import MOST_ARRAYS, task_text


def test_a_task_is_its_arrays_and_its_reference():
    assert task_text(catalog.get("2_014"), "cpu") == (
        "x: float32[100, 250]\n"
        "weight: float32[200, 250]\n"
        "\n"
        "def forward(nn, x, weight):\n"
        "    x = nn.matmul(x, weight.T)\n"
        "    x = x / 2\n"
        "    x = nn.sum(x, dim=1, keepdim=True)\n"
        "    return x * 1.5\n"
    )


def test_parameters_are_shown_under_the_names_of_the_arguments():
    assert "ln_weight: float32[" in task_text(catalog.get("1_040"), "cpu")


def test_the_text_of_a_size_shows_the_reference_of_that_size():
    assert "nn.diag" in task_text(catalog.get("1_012"), "kb_v0")


@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_texts_are_short_enough_for_a_prompt(task_id):
    most = {"1": 400, "2": 700, "3": 6000}[task_id[0]]  # by level
    assert len(task_text(catalog.TASKS[task_id], "cpu")) < most


def test_of_hundreds_of_arrays_the_first_are_shown_and_how_many_follow():
    task = catalog.get("3_010")
    arrays, _, source = task_text(task, "cpu").partition("\n\n")
    lines = arrays.splitlines()
    assert lines[0].startswith("x: float32[")
    assert len(lines) == MOST_ARRAYS
    assert lines[-1] == f"... and {len(task.arrays_at('cpu')) - MOST_ARRAYS + 1} more, in the order of `forward`"
    assert source == task.source


def test_only_a_plain_function_can_be_a_reference():
    with pytest.raises(ValueError, match="plain function"):
        forward_text(lambda nn, x: x)
