"""Symbolic arrays give the buffers, views and steps that CuPy's arrays would, or say why a plan cannot."""

import math

import numpy as np
import pytest

from evaluator.records import Outcome, Rung


def view(buffer, offset, *shape):
    return {"buffer": buffer, "offset": offset, "shape": list(shape)}


CREATION = {
    "empty": ("cp.empty((2, 3), cp.float32)", "float32", [2, 3], None),
    "default is float64": ("cp.empty(5)", "float64", [5], None),
    "by name": ("cp.empty((2,), 'int16')", "int16", [2], None),
    "by code": ("cp.empty((2,), 'f2')", "float16", [2], None),
    "by keyword": ("cp.empty(shape=[2, 0], dtype=cp.uint8)", "uint8", [2, 0], None),
    "by dtype of an array": ("cp.empty((1,), a.dtype)", "float32", [1], None),
    "by python type": ("cp.zeros((1,), int)", "int64", [1], "0"),
    "scalar shape": ("cp.zeros((), cp.bool_)", "bool", [], "0"),
    "zeros": ("cp.zeros(3, cp.float32)", "float32", [3], "0.0"),
    "ones": ("cp.ones((3,), cp.float16)", "float16", [3], "1.0"),
    "full": ("cp.full((3,), -math.inf, cp.float32)", "float32", [3], "-inf"),
    "full of an int": ("cp.full((3,), 7)", "int64", [3], "7"),
    "full of a float": ("cp.full((3,), 7.5)", "float64", [3], "7.5"),
    "full of a typed scalar": ("cp.full((3,), cp.int8(-7))", "int8", [3], "-7"),
    "full that truncates": ("cp.full((3,), 7.5, cp.int32)", "int32", [3], "7"),
    "full of a bool": ("cp.full((3,), True)", "bool", [3], "1"),
    "empty like": ("cp.empty_like(a)", "float32", [6, 4], None),
    "zeros like": ("cp.zeros_like(a, dtype=cp.int32)", "int32", [6, 4], "0"),
    "ones like": ("cp.ones_like(a, shape=(2,))", "float32", [2], "1.0"),
    "full like": ("cp.full_like(a, cp.nan)", "float32", [6, 4], "nan"),
}


@pytest.mark.parametrize(("expression", "dtype", "shape", "fill"), CREATION.values(), ids=CREATION.keys())
def test_creation(plan_of, expression, dtype, shape, fill):
    plan = plan_of(f"r = {expression}\nreturn r", output=(shape, dtype))
    assert plan["buffers"][1] == {"name": "t1", "role": "temporary", "dtype": dtype, "shape": shape}
    fills = [] if fill is None else [{"op": "fill", "view": view(1, 0, *shape), "value": fill, "line": 5}]
    assert plan["steps"] == fills


VIEWS = {
    "row": ("a[2]", 8, [4]),
    "rows": ("a[1:3]", 4, [2, 4]),
    "part of a row": ("a[2, 1:3]", 9, [2]),
    "element": ("a[2, 1]", 9, []),
    "negative": ("a[-1]", 20, [4]),
    "ellipsis": ("a[...]", 0, [6, 4]),
    "row of a row": ("a[1:3][1]", 8, [4]),
    "reshape": ("a.reshape(2, 12)", 0, [2, 12]),
    "reshape of a tuple": ("a.reshape((-1,))", 0, [24]),
    "reshape with an unknown": ("a[2:].reshape(2, -1, 4)", 8, [2, 2, 4]),
    "ravel": ("a.ravel()", 0, [24]),
    "transposed row": ("a[1:2].T", 4, [4, 1]),
    "transposed vector": ("a[1].T", 4, [4]),
}


@pytest.mark.parametrize(("expression", "offset", "shape"), VIEWS.values(), ids=VIEWS.keys())
def test_a_contiguous_view_shares_its_buffer(plan_of, expression, offset, shape):
    plan = plan_of(f"return {expression}", output=(shape, "float32"))
    assert plan["outputs"] == [view(0, offset, *shape)]
    assert len(plan["buffers"]) == 1


@pytest.mark.gpu
@pytest.mark.parametrize(("expression", "dtype", "shape", "fill"), CREATION.values(), ids=CREATION.keys())
def test_creation_under_real_cupy(expression, dtype, shape, fill):
    cp = pytest.importorskip("cupy")
    result = eval(expression, {"cp": cp, "math": math, "a": cp.zeros((6, 4), cp.float32)})
    assert (result.dtype.name, list(result.shape)) == (dtype, shape)
    if fill is not None:
        np.testing.assert_array_equal(cp.asnumpy(result), np.full(shape, float(fill), dtype))


@pytest.mark.gpu
@pytest.mark.parametrize(("expression", "offset", "shape"), VIEWS.values(), ids=VIEWS.keys())
def test_views_under_real_cupy(expression, offset, shape):
    cp = pytest.importorskip("cupy")
    a = cp.zeros((6, 4), cp.float32)
    result = eval(expression, {"cp": cp, "a": a})
    assert list(result.shape) == shape
    assert result.flags.c_contiguous
    assert result.data.ptr - a.data.ptr == 4 * offset


NOT_VIEWS = {
    "column": ("a[:, 1]", "not contiguous"),
    "columns": ("a[:, 0:2]", "not contiguous"),
    "step": ("a[::2]", "step 2"),
    "transpose": ("a.T", "swap the indices in the kernel"),
    "new axis": ("a[None]", "use .reshape"),
    "by array": ("a[a]", "index inside a kernel"),
    "fortran order": ("a.reshape(24, order='F')", "only 'C'"),
}


@pytest.mark.parametrize(("expression", "reason"), NOT_VIEWS.values(), ids=NOT_VIEWS.keys())
def test_what_a_plan_cannot_express_is_refused_with_the_reason(fault_of, expression, reason):
    found = fault_of(f"n = 1\nreturn {expression}")
    assert (found.outcome, found.rung, found.line) == (Outcome.REFUSED, Rung.TRACE, 6)
    assert reason in found.message


def test_fills_and_copies(plan_of):
    plan = plan_of("b = cp.empty_like(a)\nb.fill(2)\nb[1] = 0.5\nb[...] = a\ncp.copyto(b[2:4], a[0:2])\nreturn b")
    assert plan["steps"] == [
        {"op": "fill", "view": view(1, 0, 6, 4), "value": "2.0", "line": 6},
        {"op": "fill", "view": view(1, 4, 4), "value": "0.5", "line": 7},
        {"op": "copy", "from": view(0, 0, 6, 4), "to": view(1, 0, 6, 4), "line": 8},
        {"op": "copy", "from": view(0, 0, 2, 4), "to": view(1, 8, 2, 4), "line": 9},
    ]


@pytest.mark.parametrize(
    ("statement", "outcome", "reason"),
    [
        ("a[1:3] = a[0:2]", Outcome.REFUSED, "overlapping"),
        ("a[0] = cp.empty((4,), cp.float16)", Outcome.REFUSED, "converts"),
        ("a[...] = cp.empty((4,), cp.float32)", Outcome.REFUSED, "shapes must be equal"),
        ("a[:, 0] = 1", Outcome.REFUSED, "not contiguous"),
        ("cp.copyto(cp.empty(3, cp.int32), 0.5)", Outcome.TRACE_ERROR, "cannot cast"),
        ("cp.full((3,), 256, cp.uint8)", Outcome.TRACE_ERROR, "out of bounds"),
        ("cp.zeros((2,), 'float8')", Outcome.TRACE_ERROR, "not understood"),
        ("cp.zeros((-2,))", Outcome.TRACE_ERROR, "negative dimensions"),
        ("cp.zeros((2.0,))", Outcome.TRACE_ERROR, "expected int"),
        ("cp.zeros((2,), order='F')", Outcome.REFUSED, "only 'C'"),
        ("a.reshape(5, 5)", Outcome.TRACE_ERROR, "cannot reshape array of size 24"),
        ("a.reshape(-1, -1)", Outcome.TRACE_ERROR, "one unknown dimension"),
        ("a[9]", Outcome.TRACE_ERROR, "out of bounds for axis 0"),
        ("a[0, 0, 0]", Outcome.TRACE_ERROR, "too many indices"),
    ],
)
def test_a_wrong_array_operation(fault_of, statement, outcome, reason):
    found = fault_of(f"{statement}\nreturn a")
    assert (found.outcome, found.line) == (outcome, 5)
    assert reason in found.message


VALUE_USES = {
    "if": "if a: pass",
    "if of an element": "if a[0, 0]: pass",
    "int": "n = int(a[0, 0])",
    "float": "n = float(a[0, 0])",
    "range": "n = [i for i in range(a[0, 0])]",
    "index of a list": "n = [1][a[0, 0]]",
    "not": "n = not a",
    "and": "n = a and 1",
    "math": "n = math.sqrt(a[0, 0])",
    "dimension": "n = cp.empty((a[0, 0],))",
    "scalar": "n = cp.float32(a[0, 0])",
    "fill": "a.fill(a[0, 0])",
    "str": "n = str(a)",
    "in": "n = 3 in a",
    "round": "n = round(a[0, 0])",
}


@pytest.mark.parametrize("statement", VALUE_USES.values(), ids=VALUE_USES.keys())
def test_using_an_arrays_values_says_so(fault_of, statement):
    found = fault_of(f"{statement}\nreturn a")
    assert (found.outcome, found.rung, found.line) == (Outcome.TRACE_ERROR, Rung.TRACE, 5)
    assert "needs the array's values" in found.message


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "<<", ">>", "&", "|", "^", "<", "<=", "==", "!="])
def test_arithmetic_on_arrays_is_refused_with_the_cure(fault_of, operator):
    for expression in (f"a {operator} a", f"a {operator} 1", f"1 {operator} a"):
        found = fault_of(f"return {expression}")
        assert found.outcome is Outcome.REFUSED
        assert "write a kernel" in found.message


@pytest.mark.parametrize(
    "expression", ["-a", "+a", "~a", "abs(a)", "max(a, a)", "min(a)", "sum(a)", "sorted(a)", "list(a)"]
)
def test_functions_of_arrays_are_refused(fault_of, expression):
    assert fault_of(f"return {expression}").outcome is Outcome.REFUSED


MATMULS = {
    "matrices": ("a @ b", ((6, 4), (4, 5)), (6, 5), ((6, 4), (4, 5), (6, 5))),
    "by name": ("cp.matmul(a, b)", ((6, 4), (4, 5)), (6, 5), ((6, 4), (4, 5), (6, 5))),
    "vector": ("a @ b", ((6, 4), (4,)), (6,), ((6, 4), (4, 1), (6, 1))),
    "row vector": ("a @ b", ((6,), (6, 5)), (5,), ((1, 6), (6, 5), (1, 5))),
    "dot": ("a @ b", ((6,), (6,)), (), ((1, 6), (6, 1), (1, 1))),
    "batch": ("a @ b", ((3, 6, 4), (3, 4, 5)), (3, 6, 5), ((3, 6, 4), (3, 4, 5), (3, 6, 5))),
    "batch on the left": ("a @ b", ((3, 6, 4), (4, 5)), (3, 6, 5), ((3, 6, 4), (4, 5), (3, 6, 5))),
    "batch on the right": ("a @ b", ((6, 4), (2, 3, 4, 5)), (2, 3, 6, 5), ((6, 4), (2, 3, 4, 5), (2, 3, 6, 5))),
    "empty": ("a @ b", ((6, 0), (0, 5)), (6, 5), ((6, 0), (0, 5), (6, 5))),
}


@pytest.mark.parametrize(("expression", "shapes", "shape", "operands"), MATMULS.values(), ids=MATMULS.keys())
def test_matmul_is_a_step(plan_of, expression, shapes, shape, operands):
    plan = plan_of(f"return {expression}", shapes=shapes, output=(shape, "float32"))
    a, b, out = (view(i, 0, *operand) for i, operand in enumerate(operands))
    turned = {"transpose_a": False, "transpose_b": False}
    assert plan["steps"] == [{"op": "matmul", "a": a, "b": b, "out": out, **turned, "line": 5}]


def test_matmul_into_an_array(plan_of):
    body = "c = cp.empty((2, 6, 5), cp.float32)\ncp.matmul(a, b, out=c[1])\nreturn c"
    plan = plan_of(body, shapes=((6, 4), (4, 5)), output=((2, 6, 5), "float32"))
    assert plan["steps"][0]["out"] == view(2, 30, 6, 5)


@pytest.mark.parametrize(
    ("expression", "shapes", "dtype", "outcome", "reason"),
    [
        ("a @ b", ((6, 4), (5, 4)), "float32", Outcome.TRACE_ERROR, "do not fit"),
        ("a @ b", ((6, 4), (4, 5)), "int32", Outcome.REFUSED, "same float dtype"),
        ("a @ b", ((2, 6, 4), (3, 4, 5)), "float32", Outcome.REFUSED, "batches"),
        ("a @ b", ((), (4, 5)), "float32", Outcome.TRACE_ERROR, "no dimensions"),
        ("a @ 3", ((6, 4), (4, 5)), "float32", Outcome.TRACE_ERROR, "expected arrays"),
        ("cp.matmul(a, a, out=a)", ((4, 4), (4, 5)), "float32", Outcome.REFUSED, "overlaps"),
        ("cp.matmul(a, b, out=a)", ((6, 4), (4, 5)), "float32", Outcome.REFUSED, "out has shape (6, 4)"),
        ("cp.matmul(a, b, out=1)", ((6, 4), (4, 5)), "float32", Outcome.TRACE_ERROR, "out is a int"),
    ],
)
def test_a_wrong_matmul(fault_of, expression, shapes, dtype, outcome, reason):
    found = fault_of(f"return {expression}", shapes=shapes, dtype=dtype)
    assert found.outcome is outcome
    assert reason in found.message


def test_attributes_of_an_array(plan_of):
    body = """assert a.shape == (6, 4) and a.size == 24 and a.ndim == 2 and len(a) == 6
assert a.itemsize == 4 and a.nbytes == 96 and a.dtype.itemsize == 4
assert a.dtype == cp.float32 and a.dtype == "float32" and a.dtype != cp.float64 and str(a.dtype) == a.dtype.name
assert cp.float32 == cp.float32 and cp.float32 != cp.int32 and cp.float32 == a.dtype
return a"""
    assert plan_of(body)["outputs"] == [view(0, 0, 6, 4)]


def test_arithmetic_on_typed_scalars_is_refused(fault_of):
    found = fault_of("n = cp.float32(2) * 3\nreturn a")
    assert "compute first, convert last" in found.message
