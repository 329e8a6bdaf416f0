"""Tasks from a user's file: a good file loads, a bad one says what to change."""

import pytest

from evaluator.nn import run
from evaluator.tasks.task import Array
from evaluator.tasks.text import task_text
from evaluator.tasks.user import TaskFileError, load

FORWARD = "def product(nn, x, weight):\n    return nn.relu(nn.matmul(x, weight))\n\n"
GOOD = (
    FORWARD
    + """
TASKS = {
    "relu_product": {
        "forward": product,
        "sizes": {"cpu": {"x": (60, 50), "weight": {"shape": (50, 70), "init": "normal(0,1)", "parameter": True}}},
        "cases": ["negated"],
        "family": "chain",
    },
}
"""
)


def write(tmp_path, text):
    path = tmp_path / "my_tasks.py"
    path.write_text(text)
    return path


def test_a_good_file_gives_its_tasks(tmp_path):
    task = load(write(tmp_path, GOOD))["relu_product"]
    assert task.family == "chain"
    assert task.cases == ("negated",)
    assert task.sizes["cpu"][1] == Array("weight", (50, 70), init="normal(0,1)", parameter=True)
    assert run.abstract(task, "cpu") == [((60, 70), "float32")]
    assert "def forward(nn, x, weight):" in task_text(task, "cpu")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", "expected a dict TASKS"),
        (GOOD.replace('"chain"', '"chian"'), "family is 'chian'; it must be one of attention, chain"),
        (GOOD.replace('"normal(0,1)"', '"normal(0,1)", "dtype": "float"'), "dtype is 'float'; it must be one of bool"),
        (GOOD.replace("negated", "inverted"), "unknown case 'inverted'; the cases are plain, negated"),
        ("1 +", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("TASKS = {'t': {'sizes': {}}}", '"forward" and "sizes"'),
        (FORWARD + "TASKS = {'a b': {'forward': product, 'sizes': {}}}", "letters, digits and underscores"),
        (FORWARD + "TASKS = {'t': {'forward': product, 'sizes': {}}}", "at least one size"),
        (FORWARD + "TASKS = {'t': {'forward': product, 'sizes': {'cpu': {'x': (2, 3)}}}}", "lists \\['x'\\]"),
        (FORWARD + "TASKS = {'t': {'forward': product, 'sizes': {'cpu': {'x': 'big'}}}}", "tuple of integers"),
        (FORWARD + "TASKS = {'t': {'forward': product, 'sizes': {'cpu': {'x': (2,), 'weight': (-1,)}}}}", "integers"),
        (FORWARD + "TASKS = {'t': {'forward': product, 'size': {}, 'sizes': {}}}", "unknown field 'size'"),
        (
            FORWARD + "TASKS = {'t': {'forward': product, 'precision': 'fp8', 'sizes': {'cpu': {}}}}",
            "fp32, tf32, half",
        ),
        (
            FORWARD + "TASKS = {'t': {'forward': product, 'sizes': {'cpu': {'x': {'shape': (2,), 'init': 'u'}}}}}",
            "uniform\\(low,high\\)",
        ),
        (
            FORWARD + "TASKS = {'t': {'forward': product, 'sizes': {'cpu': {'x': {'shape': (2,), 'dtype': 'f99'}}}}}",
            "f99",
        ),
        (
            FORWARD
            + "TASKS = {'t': {'forward': product, 'sizes': {'cpu': {"
            + "'x': {'shape': (2, 2), 'parameter': True}, 'weight': (2, 2)}}}}",
            "after the inputs",
        ),
        ("TASKS = {'t': {'forward': lambda nn, x: x, 'sizes': {'cpu': {'x': (2,)}}}}", "defined with `def`"),
    ],
)
def test_a_bad_file_says_what_to_change(tmp_path, text, complaint):
    with pytest.raises(TaskFileError, match=complaint):
        load(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TaskFileError, match=r"absent\.py: no such file"):
        load(tmp_path / "absent.py")


def test_a_folder_is_said_to_be_one(tmp_path):
    with pytest.raises(TaskFileError, match="a folder; give the path of one Python file"):
        load(tmp_path)


def test_a_reference_that_fails_on_its_shapes_names_its_task(tmp_path):
    task = load(write(tmp_path, GOOD.replace("(50, 70)", "(51, 70)")))["relu_product"]
    with pytest.raises(ValueError, match="relu_product fails on its own shapes"):
        run.abstract(task, "cpu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit(0)\n", "raised SystemExit"),
        ("TASKS = {'t': {'forward': 3, 'sizes': {'cpu': {'x': (3,)}}}}\n", "must be a function"),
        (GOOD.replace('["negated"]', "5"), '"cases" is a tuple of strings, saw 5'),
    ],
    ids=["leaves", "no function", "cases"],
)
def test_a_file_that_would_end_the_command_is_a_finding(text, message, tmp_path):
    with pytest.raises(TaskFileError, match=message):
        load(write(tmp_path, text))
