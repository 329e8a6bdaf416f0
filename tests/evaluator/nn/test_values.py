"""Every reference against values that PyTorch gave in float64 (remake: `python tests/evaluator/nn/test_parity.py`)."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

STORED = json.loads((pathlib.Path(__file__).parents[2] / "data" / "task_values.json").read_text())


def test_every_task_has_stored_values_for_each_of_its_references():
    sources = {task.id: [task.source, *task.sources_at.values()] for task in catalog.TASKS.values()}
    assert {task_id: [entry["source"] for entry in entries] for task_id, entries in STORED.items()} == sources


@pytest.mark.parametrize("task_id", STORED)
def test_a_reference_equals_the_stored_values(task_id):
    for entry in STORED[task_id]:
        arrays = [jnp.asarray(array) for array in draw(catalog.TASKS[task_id], entry["size"], seed=11)]
        (output,) = run.run(entry["source"], jax_nn, arrays)
        flat = np.asarray(output, np.float64).ravel()
        picked = np.linspace(0, flat.size - 1, min(64, flat.size)).astype(int)
        assert list(output.shape) == entry["shape"]
        np.testing.assert_allclose(np.linalg.norm(flat), entry["norm"], rtol=1e-5)
        np.testing.assert_allclose(flat[picked], entry["values"], rtol=2e-5, atol=2e-6 * np.abs(flat).max())
