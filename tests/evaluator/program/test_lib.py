"""evaluator.lib: what a program may call, the steps that come of it, and the values on the emulator and under CuPy."""

import dataclasses
import inspect
import runpy

import jax
import numpy as np
import pytest

from evaluator import lib
from evaluator.judge.ladder import Judge
from evaluator.nn import jax_nn
from evaluator.program import library, surface
from evaluator.program.tracer import library as traced
from evaluator.records import Limits, Outcome
from evaluator.tasks.task import Array, Task

HEAD = "import cupy as cp\nfrom evaluator import lib\n"


def task_of(reference, *shapes):
    arrays = tuple(Array(name, shape, init="normal(0,1)") for name, shape in zip("abc", shapes, strict=False))
    names = ", ".join(array.name for array in arrays)
    return Task("t", "t", "convolution", f"def forward(nn, {names}):\n    return {reference}\n", {"cpu": arrays})


def program_of(expression, *shapes):
    return f"{HEAD}\ndef forward({', '.join('abc'[: len(shapes)])}):\n    return {expression}\n"


# call, reference, shapes
CALLS = {
    "gemm": ("lib.gemm(a, b)", "nn.matmul(a, b)", (7, 30), (30, 9)),
    "gemm, left turned": ("lib.gemm(a, b, transpose_a=True)", "nn.matmul(a.T, b)", (30, 7), (30, 9)),
    "gemm, right turned": ("lib.gemm(a, b, transpose_b=True)", "nn.matmul(a, b.T)", (7, 30), (9, 30)),
    "gemm, both turned": ("lib.gemm(a, b, True, True)", "nn.matmul(a.T, b.T)", (30, 70), (90, 30)),
    "gemm of batches": ("lib.gemm(a, b)", "nn.bmm(a, b)", (3, 7, 30), (3, 30, 9)),
    "gemm, one for all": ("lib.gemm(a, b)", "nn.matmul(a, b)", (3, 7, 30), (30, 9)),
    "conv 1-D": ("lib.conv(a, b, stride=2, padding=3)", "nn.conv1d(a, b, stride=2, padding=3)", (2, 3, 31), (5, 3, 4)),
    "conv 2-D": ("lib.conv(a, b)", "nn.conv2d(a, b)", (2, 3, 11, 9), (5, 3, 3, 2)),
    "conv, each its own": (
        "lib.conv(a, b, stride=(1, 2), padding=(2, 0), dilation=(2, 1))",
        "nn.conv2d(a, b, stride=(1, 2), padding=(2, 0), dilation=(2, 1))",
        (2, 3, 11, 9),
        (5, 3, 3, 2),
    ),
    "conv in groups": ("lib.conv(a, b, groups=2)", "nn.conv2d(a, b, groups=2)", (2, 6, 8, 9), (4, 3, 3, 3)),
    "conv 3-D": ("lib.conv(a, b, padding=1)", "nn.conv3d(a, b, padding=1)", (1, 2, 5, 6, 7), (3, 2, 3, 3, 3)),
    "transposed 1-D": ("lib.conv(a, b, transposed=True)", "nn.conv_transpose1d(a, b)", (2, 3, 20), (3, 5, 4)),
    "transposed 2-D": (
        "lib.conv(a, b, stride=2, padding=1, transposed=True, output_padding=1)",
        "nn.conv_transpose2d(a, b, stride=2, padding=1, output_padding=1)",
        (2, 3, 7, 6),
        (3, 4, 4, 3),
    ),
    "transposed in groups": (
        "lib.conv(a, b, stride=2, dilation=2, groups=2, transposed=True)",
        "nn.conv_transpose2d(a, b, stride=2, dilation=2, groups=2)",
        (2, 4, 5, 6),
        (4, 3, 3, 2),
    ),
    "transposed 3-D": (
        "lib.conv(a, b, transposed=True)",
        "nn.conv_transpose3d(a, b)",
        (1, 2, 4, 5, 3),
        (2, 3, 3, 2, 3),
    ),
    "attention": (
        "lib.attention(a, b, c)",
        "nn.scaled_dot_product_attention(a, b, c)",
        (2, 3, 17, 8),
        (2, 3, 17, 8),
        (2, 3, 17, 8),
    ),
    "causal attention": (
        "lib.attention(a, b, c, causal=True)",
        "nn.scaled_dot_product_attention(a, b, c, is_causal=True)",
        (3, 17, 8),
        (3, 17, 8),
        (3, 17, 8),
    ),
    "attention to fewer": (
        "lib.attention(a, b, c)",
        "nn.scaled_dot_product_attention(a, b, c)",
        (4, 9, 8),
        (4, 5, 8),
        (4, 5, 6),
    ),
}
CASES = pytest.mark.parametrize(("call", "reference", "shapes"), [(c, r, s) for c, r, *s in CALLS.values()], ids=CALLS)


@pytest.fixture(scope="module")
def judge():
    with Judge() as started:
        yield started


def test_the_library_the_surface_and_the_tracer_name_the_same_steps():
    public = {name for name, value in vars(lib).items() if inspect.isfunction(value) and name[0] != "_"}
    assert public == surface.LIB
    for name in surface.LIB:
        ours, recorded = (inspect.signature(getattr(module, name)).parameters for module in (lib, traced))
        assert list(ours) == list(recorded)
        assert [each.default for each in ours.values()] == [each.default for each in recorded.values()]


@CASES
def test_a_step_has_the_values_of_the_reference_on_the_emulator(judge, call, reference, shapes):
    verdict = judge.check(program_of(call, *shapes), task_of(reference, *shapes), timing=False)
    assert verdict.outcome is Outcome.OK, verdict.message
    assert verdict.own_kernel_share == 0.0


def test_a_result_may_go_into_an_array_of_the_program(judge):
    text = (
        f"{HEAD}\ndef forward(a, b):\n    c = cp.empty((7, 9), cp.float32)\n    lib.gemm(a, b, out=c)\n    return c\n"
    )
    assert judge.check(text, task_of("nn.matmul(a, b)", (7, 30), (30, 9)), timing=False).ok


@pytest.mark.parametrize(
    ("expression", "outcome", "words"),
    [
        ("lib.gemm(a, b)", Outcome.TRACE_ERROR, "30 columns meet 9 rows"),
        ("lib.gemm(a, 3)", Outcome.TRACE_ERROR, "expected arrays"),
        ("lib.gemm(a, b, transpose_b=True, out=a)", Outcome.REFUSED, "out has shape"),
        ("lib.conv(a, b)", Outcome.TRACE_ERROR, "expected both of 3, 4 or 5 dimensions"),
        ("lib.conv(a.reshape((1, 7, 30)), b.reshape((1, 9, 30)))", Outcome.TRACE_ERROR, "7 channels"),
        ("lib.conv(a.reshape((1, 7, 30)), b.reshape((1, 9, 30)), stride=0)", Outcome.TRACE_ERROR, "stride is (0,)"),
        ("lib.conv(a.reshape((1, 7, 30)), b.reshape((1, 9, 30)), groups=1.0)", Outcome.TRACE_ERROR, "groups is 1.0"),
        ("lib.conv(a.reshape((1, 7, 30)), b.reshape((1, 9, 30)), groups=True)", Outcome.TRACE_ERROR, "groups is True"),
        ("lib.conv(a.reshape((1, 7, 30)), b.reshape((9, 30, 1)), padding=1 << 21)", Outcome.TRACE_ERROR, "to 1048576"),
        ("lib.attention(a, b, b.reshape((30, 9)))", Outcome.TRACE_ERROR, "attention: shapes"),
        ("lib.sort(a)", Outcome.REFUSED, "sort"),
    ],
)
def test_what_does_not_fit_is_a_fault_with_its_reason(judge, expression, outcome, words):
    verdict = judge.check(program_of(expression, 0, 0), task_of("nn.matmul(a, b.T)", (7, 30), (9, 30)), timing=False)
    assert verdict.outcome is outcome
    assert words in verdict.message


@pytest.mark.parametrize("by", ["run", "task"])
def test_library_steps_may_be_forbidden(by):
    task = task_of("nn.matmul(a, b)", (7, 30), (30, 9))
    limits = Limits(library_steps=by != "run")
    with Judge(limits=limits) as judge:
        verdict = judge.check(program_of("a @ b", 0, 0), dataclasses.replace(task, library_steps=by != "task"))
    assert (verdict.outcome, verdict.line) == (Outcome.REFUSED, 5)
    assert "write kernels" in verdict.message


@pytest.mark.parametrize(
    ("x", "weight", "changes", "expected"),
    [
        ((2, 4, 9), (6, 4, 3), {}, (2, 6, 7)),
        ((2, 4, 9), (6, 2, 3), {"groups": 2}, (2, 6, 7)),
        ((2, 4, 9), (4, 6, 3), {"transposed": True, "stride": (3,), "output_padding": (2,)}, (2, 6, 29)),
        ((2, 4, 9, 8), (6, 4, 3, 1), {"padding": (1, 0), "dilation": (2, 5)}, (2, 6, 7, 8)),
    ],
)
def test_shapes_of_convolutions(x, weight, changes, expected):
    ndim = len(x) - 2
    usual = {"stride": (1,) * ndim, "padding": (0,) * ndim, "dilation": (1,) * ndim, "output_padding": (0,) * ndim}
    options = {**usual, "groups": 1, "transposed": False, **changes}
    assert library.conv_shape(x, weight, **options) == expected


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": np.zeros((2, 3, 9))}, "an array of float64"),
        ({"weight": np.zeros((4, 3, 5), np.float32).T}, "expected contiguous float32"),
        ({"out": np.zeros((2, 5, 8), np.float32)}, r"out has shape \(2, 5, 8\), expected \(2, 5, 6\)"),
        ({"out": np.zeros((2, 5, 6), np.float16)}, "an array of float16"),
    ],
)
def test_cudnn_is_given_no_array_that_it_would_misread(changes, words):
    fitting = {"x": np.zeros((2, 3, 9), np.float32), "weight": np.zeros((5, 3, 4), np.float32)}
    with pytest.raises(ValueError, match=words):
        lib.conv(**{**fitting, **changes})


@pytest.mark.gpu
@CASES
def test_a_step_has_the_values_of_the_reference_under_cupy(tmp_path, call, reference, shapes):
    cp = pytest.importorskip("cupy")
    file = tmp_path / "program.py"
    file.write_text(program_of(call, *shapes))
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    seen = runpy.run_path(str(file))["forward"](*map(cp.asarray, arrays))
    assert type(seen) is cp.ndarray
    names = ("a", "b", "c")[: len(shapes)]
    with jax.enable_x64(True):
        wide = {name: jax.numpy.asarray(array, np.float64) for name, array in zip(names, arrays, strict=True)}
        expected = np.asarray(eval(reference, {"nn": jax_nn, **wide}))
    np.testing.assert_allclose(cp.asnumpy(seen), expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


@pytest.fixture(scope="module")
def gpu_judge():
    pytest.importorskip("cupy")
    with Judge("cuda") as started:
        yield started


@pytest.mark.gpu
@CASES
def test_a_step_is_judged_on_a_gpu(gpu_judge, call, reference, shapes):
    task = dataclasses.replace(task_of(reference, *shapes), precision="tf32")
    verdict = gpu_judge.check(program_of(call, *shapes), task)
    assert verdict.outcome is Outcome.OK, verdict.message
