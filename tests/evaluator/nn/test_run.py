"""Running a reference text: its outputs, their abstract values, and what a bad text is told."""

import dataclasses

import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog


def test_outputs_are_always_a_tuple():
    x = np.arange(3, dtype=np.float32)
    one = run.run("def forward(nn, x):\n    return x + 1\n", jax_nn, [x])
    two = run.run("def forward(nn, x):\n    return x, nn.neg(x)\n", jax_nn, [x])
    np.testing.assert_array_equal(one[0], [1, 2, 3])
    np.testing.assert_array_equal(two[1], [0, -1, -2])


@pytest.mark.parametrize(
    ("source", "complaint"), [("def forward(nn, x:", "not valid Python.*line 1"), ("x = 1", "no `forward`")]
)
def test_a_text_that_is_no_reference_is_refused(source, complaint):
    with pytest.raises(ValueError, match=complaint):
        run.compile_forward(source)


def test_abstract_outputs_cost_no_memory():
    assert run.abstract(catalog.get("1_019"), "kb") == [((4096, 393216), "float32")]  # six gigabytes, were they real


def test_abstract_uses_the_reference_of_the_size():
    task = dataclasses.replace(
        catalog.get("1_019"), sources_at={"kb": "def forward(nn, x):\n    return nn.sum(x, dim=1)\n"}
    )
    assert run.abstract(task, "kb") == [((4096,), "float32")]
    assert run.abstract(task, "cpu") == [((100, 16400), "float32")]
