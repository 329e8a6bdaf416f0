"""Under real CuPy, on a GPU, each program is an ordinary program and gives the reference's values at every size."""

import pathlib
import runpy

import jax
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

pytestmark = pytest.mark.gpu
cp = pytest.importorskip("cupy", reason="needs CuPy and an NVIDIA GPU")

FOLDER = pathlib.Path(__file__).parents[3] / "kernels"
PROGRAMS = sorted(FOLDER.glob("*/*.py"))
BETTER = [path for path in PROGRAMS if path.name != "plain.py"]
REWORDED = {"1_012"}  # tasks whose text at kb_v0 is another one for the same function
SERVED = [
    (path, size)
    for path in PROGRAMS
    for size in ("cpu", "kb_v0")
    if size not in (task := catalog.get(path.parent.name)).sources_at or task.id in REWORDED
]
TOLERANCE = {"fp32": 1e-5, "tf32": 2e-3}  # of the largest value


def named(value):
    return f"{value.parent.name}/{value.name}" if isinstance(value, pathlib.Path) else None


def values(path, specs, arrays):
    """What `forward` of a program gives; more than twelve parameters come as a dict, as in the evaluator."""
    parameters = {spec.name: array for spec, array in zip(specs, arrays, strict=True) if spec.parameter}
    given = arrays if len(parameters) <= 12 else [*arrays[: -len(parameters)], parameters]
    return runpy.run_path(str(path))["forward"](*given)


def assert_close(seen, expected, precision):
    assert seen.shape == expected.shape
    scale = float(cp.abs(expected).max())
    assert float(cp.abs(seen - expected).max()) <= TOLERANCE[precision] * scale


@pytest.mark.parametrize(("path", "size"), SERVED, ids=named)
def test_a_program_gives_the_references_values(path, size):
    task = catalog.get(path.parent.name)
    arrays = draw(task, size, seed=3)
    with jax.enable_x64(True):
        wide = [jax.numpy.asarray(array, np.float64) for array in arrays]
        (expected,) = run.run(task.source_at(size), jax_nn, wide)
    seen = values(path, task.arrays_at(size), [cp.asarray(array) for array in arrays])
    assert (str(seen.dtype), seen.shape) == run.abstract(task, size)[0][::-1]
    assert_close(seen.astype(cp.float64), cp.asarray(np.asarray(expected, np.float64)), task.precision)


@pytest.mark.slow
@pytest.mark.parametrize("path", BETTER, ids=named)
def test_at_the_benchmarks_size_a_better_program_agrees_with_the_plain_one(path):
    task = catalog.get(path.parent.name)
    cp.random.seed(3)
    arrays = [cp.random.standard_normal(array.shape, dtype=cp.float32) for array in task.arrays_at("kb")]
    expected = values(path.with_name("plain.py"), task.arrays_at("kb"), arrays)
    assert_close(values(path, task.arrays_at("kb"), arrays), expected, task.precision)
