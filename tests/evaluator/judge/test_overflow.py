"""The cases of a task keep its exact outputs within float32: one that does not is left out by `Task.cases`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.judge.cases import cases_of, inputs_for
from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog

LARGEST = np.finfo(np.float32).max
PRODUCTS = {"1_090"}  # products of a thousand numbers overflow wherever they are not near 1
SHALLOW = [task.id for task in catalog.TASKS.values() if len(task.arrays_at("cpu")) <= 30 and task.id not in PRODUCTS]
QUICK = {"3_049", "1_098"}  # exponentials of sums, logarithms


def widened(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


@pytest.mark.parametrize("task_id", [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in SHALLOW])
def test_no_case_makes_the_exact_outputs_overflow(task_id):
    task = catalog.get(task_id)
    compiled = jax.jit(lambda *arrays: run.run(task.source, jax_nn, arrays))
    with jax.enable_x64(True):
        for case in cases_of(task):
            for output in compiled(*(jnp.asarray(widened(x)) for x in inputs_for(task, "cpu", case, seed=5))):
                assert float(jnp.abs(output).max()) < LARGEST, case  # not for NaN either
