"""`cupy_nn` on a GPU, under the real CuPy: values of both dtypes, and capture in a CUDA graph."""

import pathlib
import runpy

import jax
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

pytestmark = pytest.mark.gpu
cp = pytest.importorskip("cupy")
try:
    cp.cuda.runtime.getDeviceCount()
except cp.cuda.runtime.CUDARuntimeError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from evaluator.nn import cupy_nn  # noqa: E402  # needs CuPy

CALLS = runpy.run_path(str(pathlib.Path(__file__).with_name("calls.py")))["CALLS"]
TF32 = {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}


def each_array(convert, value):
    if isinstance(value, np.ndarray):
        return convert(value)
    return tuple(each_array(convert, part) for part in value) if isinstance(value, tuple) else value


def listed(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def widened(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


@pytest.mark.parametrize("convert", [np.asarray, widened], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_a_function_has_the_values_of_the_namespace(name, arguments, keywords, convert):
    with jax.enable_x64(True):
        exact = listed(getattr(jax_nn, name)(*each_array(widened, arguments), **keywords))
    given = each_array(lambda array: cupy_nn.operand(cp.asarray(convert(array))), arguments)
    tolerance = 1e-10 if convert is widened else 3e-3 if name in TF32 else 2e-5
    for ours, expected in zip(listed(getattr(cupy_nn, name)(*given, **keywords)), exact, strict=True):
        np.testing.assert_allclose(cp.asnumpy(ours), np.asarray(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_a_reference_can_be_captured(task_id):
    task = catalog.TASKS[task_id]
    arrays = [cp.asarray(array) for array in draw(task, "cpu", seed=3)]
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(2):  # compiles, and fills the stream's memory pool
            (eager,) = run.run(task.source, cupy_nn, arrays)
        stream.begin_capture()
        (captured,) = run.run(task.source, cupy_nn, arrays)
        graph = stream.end_capture()
        captured.view(cp.ndarray)[...] = 0
        graph.launch(stream)
        stream.synchronize()
    cp.testing.assert_allclose(captured.view(cp.ndarray), eager.view(cp.ndarray), rtol=1e-6, atol=1e-6)
