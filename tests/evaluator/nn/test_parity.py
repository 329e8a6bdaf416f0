"""Every function of the namespace, and every task, against PyTorch."""

import inspect
import json
import pathlib
import runpy
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

torch_nn = pytest.importorskip("evaluator.nn.torch_nn")
CALLS = runpy.run_path(str(pathlib.Path(__file__).with_name("calls.py")))["CALLS"]


def each_array(convert, value):
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, tuple):
        return tuple(each_array(convert, part) for part in value)
    return value


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_a_function_equals_pytorchs(name, arguments, keywords):
    seen = getattr(jax_nn, name)(*each_array(jnp.asarray, arguments), **keywords)
    expected = getattr(torch_nn, name)(*each_array(torch.from_numpy, arguments), **keywords)
    seen, expected = (value if isinstance(value, tuple) else (value,) for value in (seen, expected))
    for ours, theirs in zip(seen, expected, strict=True):
        assert ours.shape == tuple(theirs.shape)
        np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), rtol=2e-5, atol=2e-6)


def test_every_function_is_compared():
    names = {name for name, value in vars(jax_nn).items() if inspect.isfunction(value)}
    assert names == {name for name, _, _ in CALLS}


def widened(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def references():
    """(task, size, text) of every text, at the `cpu` size or, where its arguments are others, at its own."""
    for task in catalog.TASKS.values():
        yield task.id, "cpu", task.source
        for size, text in task.sources_at.items():
            names = {at: [array.name for array in task.arrays_at(at)] for at in ("cpu", size)}
            yield task.id, "cpu" if names["cpu"] == names[size] else size, text


REFERENCES = list(references())
# Models of many layers: slow to compile; rounding grows from norm to norm, so they run in float64.
DEEP = {task.id for task in catalog.TASKS.values() if len(task.arrays_at("cpu")) > 30}


def case(task_id, size, source):
    """One reference; at a size of the benchmark's it is slow."""
    marks = () if size == "cpu" else (pytest.mark.slow,)
    return pytest.param(task_id, size, source, id=task_id, marks=marks)


def cases(deep):
    return [case(*reference) for reference in REFERENCES if (reference[0] in DEEP) == deep]


@pytest.mark.parametrize(("task_id", "size", "source"), cases(deep=False))
def test_a_reference_equals_pytorch(in_jax, task_id, size, source):
    arrays = draw(catalog.TASKS[task_id], size, seed=11)
    seen = in_jax(source, arrays)
    expected = run.run(source, torch_nn, [torch.from_numpy(array) for array in arrays])
    for ours, theirs in zip(seen, expected, strict=True):
        scale = float(theirs.double().abs().max())
        atol = 1e-6 if 0 < scale < 1e-6 else 2e-6 * scale  # the small ones are rounding alone (2_023)
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-5, atol=atol)
        if theirs.dtype == torch.int64:
            np.testing.assert_array_equal(ours, theirs.numpy())


@pytest.mark.slow
@pytest.mark.parametrize(("task_id", "size", "source"), cases(deep=True))
def test_a_deep_reference_equals_pytorch(in_jax, task_id, size, source):
    arrays = [widened(array) for array in draw(catalog.TASKS[task_id], size, seed=11)]
    (expected,) = run.run(source, torch_nn, [torch.from_numpy(array) for array in arrays])
    with jax.enable_x64(True):
        (seen,) = in_jax(source, arrays)
    scale = float(expected.abs().max())
    np.testing.assert_allclose(seen, expected.numpy(), rtol=1e-9, atol=1e-9 * scale)


VALUES = pathlib.Path(__file__).parents[2] / "data" / "task_values.json"


def write_values(only: set[str]) -> None:
    """Remakes tests/data/task_values.json, which stands in for PyTorch where it is absent: run this file.

    `only`: ids of tasks whose values are made anew, none for all; those of the others stay.
    """
    known = json.loads(VALUES.read_text()) if only else {}
    stored = {}
    for task_id, size, source in REFERENCES:
        if only and task_id not in only:
            if task_id in known:
                stored[task_id] = known[task_id]
            continue
        arrays = draw(catalog.TASKS[task_id], size, seed=11)
        (output,) = run.run(source, torch_nn, [torch.from_numpy(widened(array)) for array in arrays])
        flat = output.double().numpy().ravel()
        picked = np.linspace(0, flat.size - 1, min(64, flat.size)).astype(int)
        values = [float(f"{value:.8g}") for value in flat[picked]]
        stored.setdefault(task_id, []).append(
            {
                "size": size,
                "source": source,
                "shape": list(output.shape),
                "norm": float(np.linalg.norm(flat)),
                "values": values,
            }
        )
    lines = [f'"{task_id}": {json.dumps(entries)}' for task_id, entries in stored.items()]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write_values(set(sys.argv[1:]))
