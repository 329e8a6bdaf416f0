"""`cupy_nn` against `jax_nn`: float32 on the emulator, float64 in NumPy."""

import inspect
import pathlib
import runpy
import sys

import jax
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

CALLS = runpy.run_path(str(pathlib.Path(__file__).with_name("calls.py")))["CALLS"]


def each_array(convert, value):
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, tuple):
        return tuple(each_array(convert, part) for part in value)
    return value


def listed(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def widened(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def exact(name, arguments, keywords):
    """What jax_nn gives in float64."""
    with jax.enable_x64(True):
        outputs = getattr(jax_nn, name)(*each_array(widened, arguments), **keywords)
        return [np.asarray(output) for output in listed(outputs)]


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_a_function_has_the_values_of_the_namespace(cupy_nn, on_device, name, arguments, keywords):
    seen = getattr(cupy_nn, name)(*each_array(on_device, arguments), **keywords)
    for ours, expected in zip(listed(seen), exact(name, arguments, keywords), strict=True):
        assert ours.shape == expected.shape
        assert ours.dtype == (np.float32 if expected.dtype == np.float64 else expected.dtype)
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_a_function_of_float64_is_exact(cupy_nn, on_device, name, arguments, keywords):
    cupy_nn.host.RawKernel.launches.clear()
    seen = getattr(cupy_nn, name)(*each_array(lambda x: on_device(widened(x)), arguments), **keywords)
    assert cupy_nn.host.RawKernel.launches == []  # the oracle shares no kernel with the baseline
    for ours, expected in zip(listed(seen), exact(name, arguments, keywords), strict=True):
        assert ours.shape == expected.shape
        assert ours.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-11, atol=1e-13)


# One task a family, and two with several outputs; the others in the slow tests.
FIRST = {task.family: task.id for task in reversed(catalog.TASKS.values())}.values()
FAST = {*FIRST, "1_019_backward", "1_040_backward"}
REFERENCES = [x if x in FAST else pytest.param(x, marks=pytest.mark.slow) for x in catalog.ALL]


@pytest.mark.parametrize("task_id", REFERENCES)
def test_a_reference_runs_on_the_device(cupy_nn, in_jax, on_device, task_id):
    """Text, operators and kernels together, beside the same text in JAX; where rounding alone moves outputs, beside
    float64, with four times the error that JAX has."""
    task = catalog.get(task_id)
    arrays = draw(task, "cpu", seed=5)
    outputs = run.run(task.source, cupy_nn, [on_device(array) for array in arrays])
    references, exact = in_jax(task.source, arrays), None
    if any(note.startswith("Ill-conditioned") for note in task.notes):
        with jax.enable_x64(True):
            exact = in_jax(task.source, [widened(array) for array in arrays])
    for seen, expected, true in zip(outputs, references, exact or references, strict=True):
        assert type(seen) is cupy_nn.array.Array
        scale = np.abs(expected).max()
        atol = 1e-6 if 0 < scale < 1e-6 else 5e-6 * scale  # the small ones are rounding alone (2_023)
        np.testing.assert_allclose(np.asarray(seen), true, rtol=5e-5, atol=atol + 4 * np.abs(expected - true).max())


def test_a_convolution_without_cudnn_says_what_to_install(cupy_nn, on_device, monkeypatch):
    monkeypatch.setitem(sys.modules, "cudnn", None)
    with pytest.raises(ImportError, match=r"nvidia-cudnn-frontend .*extra cuda12 or cuda13"):
        cupy_nn.convolution.cudnn_plans._cudnn()


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda nn, x: nn.conv2d(x, x[:, :3]), "is for 3 channels, the input .* has 4"),
        (lambda nn, x: nn.conv1d(x, x), "a 1-D convolution takes arrays of 3 dimensions"),
        (lambda nn, x: nn.max_pool2d(x, 3, padding=2), "padding .* exceeds half of the window"),
        (lambda nn, x: nn.avg_pool2d(x, 30), "does not fit into"),
        (lambda nn, x: nn.bmm(x, x), "needs shapes"),
        (lambda nn, x: nn.group_norm(x, 3), "4 channels cannot be split into 3 groups"),
        (lambda nn, x: nn.layer_norm(x, (3,)), "is not the end"),
        (lambda nn, x: nn.gelu(x, approximate="sigmoid"), 'must be "none" or "tanh"'),
        (lambda nn, x: nn.mse_loss(x, x, reduction="average"), '"mean", "sum" or "none"'),
        (lambda nn, x: nn.clamp(x), "give min, max or both"),
        (lambda nn, x: nn.dropout(x, p=2), "between 0 and 1"),
    ],
)
def test_bad_calls_say_what_is_wrong(cupy_nn, on_device, call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(cupy_nn, on_device(np.ones((2, 4, 9, 8), np.float32)))


def test_both_backends_have_the_same_names(cupy_nn):
    names = {
        backend.__name__: {name for name, value in vars(backend).items() if inspect.isfunction(value)}
        for backend in (cupy_nn, jax_nn)
    }
    assert names["evaluator.nn.cupy_nn"] == names["evaluator.nn.jax_nn"]


@pytest.mark.parametrize(
    ("x", "y", "out", "error", "words"),
    [
        (np.float32, np.float64, None, TypeError, "dtypes float32 and float64"),
        (np.int32, np.int32, None, TypeError, "expected one of float32"),
        (np.float32, np.float32, np.zeros((4, 3), np.float32), ValueError, r"shape \(4, 3\), expected contiguous"),
        (np.float32, np.float32, np.zeros((3, 4), np.float64), ValueError, "out is float64"),
        (np.float32, np.float32, np.zeros((4, 3), np.float32).T, ValueError, "out is scattered float32"),
    ],
)
def test_cublas_is_given_no_array_that_it_would_misread(cupy_nn, x, y, out, error, words):
    left, right = (np.zeros(shape, dtype).view(cupy_nn.host.ndarray) for shape, dtype in (((3, 5), x), ((5, 4), y)))
    with pytest.raises(error, match=words):
        cupy_nn.cublas.matmul(left, right, out)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ijk,kl->ijl", "ij->ji,j"])
def test_an_equation_that_does_not_fit_is_an_error(cupy_nn, on_device, equation):
    x, y = on_device(np.ones((2, 3), np.float32)), on_device(np.ones((4, 5), np.float32))
    with pytest.raises(ValueError):  # noqa: PT011  the words are CuPy's
        cupy_nn.einsum(equation, x, y)
