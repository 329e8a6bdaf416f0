"""Gradients as tasks: the explicit formulas against automatic differentiation of the forward texts, in float64."""

import jax
import numpy as np
import pytest

from evaluator.nn import jax_nn, operations, run
from evaluator.tasks import backward, catalog, split
from evaluator.tasks.arrays import draw

TEXTS = [
    (task.id, size)
    for task in backward.TASKS.values()
    for size in ("cpu", *task.sources_at)  # another text is another formula
]


def forward_of(task_id):
    return catalog.TASKS[task_id.removesuffix("_backward")]


def drawn(task_id, size):
    """Arrays of the forward task, the cotangent, and the arrays of the backward task, in float64.

    Sizes of the benchmark's are drawn at the shapes of `cpu`. Weights and biases of norms, which start at 1 and 0,
    are moved so that a formula that forgets them is found out.
    """
    task = catalog.get(task_id)
    values = dict(zip((a.name for a in task.sizes["cpu"]), draw(task, "cpu", seed=3), strict=True))
    for index, array in enumerate(forward_of(task_id).sizes["cpu"]):
        moved = np.random.default_rng(index).normal(size=array.shape) if array.parameter else 0.0
        values[array.name] = values.get(array.name, np.zeros(array.shape)) + moved
    wide = {name: np.asarray(value, np.float64) for name, value in values.items()}
    inputs = [wide[array.name] for array in forward_of(task_id).sizes["cpu"]]
    return inputs, wide["grad_output"], [wide[array.name] for array in task.sizes["cpu"]]


def assert_close(seen, expected):
    assert len(seen) == len(expected)
    for ours, theirs in zip(seen, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11 * np.abs(theirs).max())


def test_at_least_ten_tasks_have_gradients_and_the_benchmarks_count_stays():
    assert len(backward.TASKS) >= 10
    assert len(catalog.TASKS) == 250
    assert len(catalog.ALL) == 250 + len(backward.TASKS)
    assert catalog.get("1_019_backward") is backward.TASKS["1_019_backward"]


@pytest.mark.parametrize(("task_id", "size"), TEXTS)
def test_a_formula_is_the_derivative_of_its_forward_text(task_id, size):
    inputs, cotangent, arrays = drawn(task_id, size)
    with jax.enable_x64(True):
        forward = forward_of(task_id).source_at(size)

        def output(*operands):
            return run.run(forward, jax_nn, operands)[0]

        expected = jax.jit(lambda inputs, cotangent: jax.vjp(output, *inputs)[1](cotangent))(inputs, cotangent)
        source = catalog.get(task_id).source_at(size)
        seen = jax.jit(lambda arrays: run.run(source, jax_nn, arrays))(arrays)
    assert_close([np.asarray(x) for x in seen], [np.asarray(x) for x in expected])


@pytest.mark.torch
@pytest.mark.parametrize(("task_id", "size"), TEXTS)
def test_a_formula_equals_pytorchs_gradients(task_id, size):
    torch = pytest.importorskip("torch")
    from evaluator.nn import torch_nn

    inputs, cotangent, arrays = drawn(task_id, size)
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    (output,) = run.run(forward_of(task_id).source_at(size), torch_nn, leaves)
    expected = torch.autograd.grad(output, leaves, torch.tensor(cotangent))
    seen = run.run(catalog.get(task_id).source_at(size), torch_nn, [torch.tensor(x) for x in arrays])
    assert_close([x.numpy() for x in seen], [x.numpy() for x in expected])


@pytest.mark.parametrize("task_id", backward.TASKS)
@pytest.mark.parametrize("size", ["cpu", "kb", "kb_v0"])
def test_the_cotangent_has_the_shape_of_the_forward_output(task_id, size):
    task, forward = catalog.get(task_id), forward_of(task_id)
    cotangent = next(array for array in task.arrays_at(size) if array.name == "grad_output")
    assert [(cotangent.shape, "float32")] == run.abstract(forward, size)
    gradients = [shape for shape, _ in run.abstract(task, size)]
    assert gradients == [array.shape for array in forward.arrays_at(size)]
    assert operations.count(task, size).operations > 0


def test_gradients_are_on_the_side_of_their_forward_task():
    for task in backward.TASKS.values():
        assert split.held_out(task) == split.held_out(forward_of(task.id))
