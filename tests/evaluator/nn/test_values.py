"""Every reference against values that PyTorch gave in float64 (remake: `python tests/evaluator/nn/test_parity.py`)."""

import json
import pathlib

import jax
import numpy as np
import pytest

from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

STORED = json.loads((pathlib.Path(__file__).parents[2] / "data" / "task_values.json").read_text())
# Models of many layers: slow to compile; rounding grows from norm to norm, so they run in float64.
DEEP = {task.id for task in catalog.TASKS.values() if len(task.arrays_at("cpu")) > 30}


def test_every_task_has_stored_values_for_each_of_its_references():
    sources = {task.id: [task.source, *task.sources_at.values()] for task in catalog.TASKS.values()}
    assert {task_id: [entry["source"] for entry in entries] for task_id, entries in STORED.items()} == sources


def case(task_id, entry):
    """One reference; at a size of the benchmark's it is slow."""
    return pytest.param(task_id, entry, id=task_id, marks=() if entry["size"] == "cpu" else (pytest.mark.slow,))


SHALLOW = [case(task_id, entry) for task_id, entries in STORED.items() if task_id not in DEEP for entry in entries]


@pytest.mark.parametrize(("task_id", "entry"), SHALLOW)
def test_a_reference_equals_the_stored_values(in_jax, task_id, entry):
    (output,) = in_jax(entry["source"], draw(catalog.TASKS[task_id], entry["size"], seed=11))
    flat = output.astype(np.float64).ravel()
    picked = np.linspace(0, flat.size - 1, min(64, flat.size)).astype(int)
    assert list(output.shape) == entry["shape"]
    if 0 < entry["norm"] < 1e-12:  # in float64; what float32 gives is rounding too (2_023)
        np.testing.assert_allclose(flat, 0, atol=1e-6)
        return
    np.testing.assert_allclose(np.linalg.norm(flat), entry["norm"], rtol=1e-5)
    np.testing.assert_allclose(flat[picked], entry["values"], rtol=2e-5, atol=2e-6 * np.abs(flat).max())


@pytest.mark.slow
@pytest.mark.parametrize("task_id", [task_id for task_id in STORED if task_id in DEEP])
def test_a_deep_reference_equals_the_stored_values(in_jax, task_id):
    for entry in STORED[task_id]:
        arrays = draw(catalog.TASKS[task_id], entry["size"], seed=11)
        with jax.enable_x64(True):
            (output,) = in_jax(entry["source"], [array.astype(np.float64) for array in arrays])
        flat = output.ravel()
        picked = np.linspace(0, flat.size - 1, min(64, flat.size)).astype(int)
        assert list(output.shape) == entry["shape"]
        if 0 < entry["norm"] < 1e-12:  # in float64; what float32 gives is rounding too (2_023)
            np.testing.assert_allclose(flat, 0, atol=1e-6)
            continue
        np.testing.assert_allclose(np.linalg.norm(flat), entry["norm"], rtol=1e-9)
        np.testing.assert_allclose(flat[picked], entry["values"], rtol=1e-7, atol=1e-9 * np.abs(flat).max())
