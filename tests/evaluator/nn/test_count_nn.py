"""Operations counted from shapes: by hand, against XLA's own analysis, and shapes as JAX gives them."""

import dataclasses
import inspect
import math
import pathlib
import runpy

import jax
import numpy as np
import pytest

from evaluator.nn import count_nn as nn
from evaluator.nn import jax_nn
from evaluator.nn.count_nn.array import Array, Tally
from evaluator.nn.operations import Count, count
from evaluator.nn.run import abstract, compile_forward
from evaluator.tasks import catalog
from evaluator.tasks.task import Array as TaskArray

CALLS = runpy.run_path(str(pathlib.Path(__file__).with_name("calls.py")))["CALLS"]
# XLA counts a scan as the sum over a window of its length, nine operations for an element of argmax, the guards of
# x log x, and one step of a recurrence.
XLA_COUNTS_OTHERWISE = {
    "1_051",
    "1_052",
    "1_089",
    "1_090",
    "1_091",
    "1_092",
    "1_093",
    "1_098",
    "3_035",
    "3_036",
    "3_037",
    "3_038",
    "3_039",
    "3_040",
    "3_041",
    "3_042",
}


def counted(function, *shapes, **keywords):
    """Operations of one call on arrays of these shapes."""
    tally = Tally()
    function(*(Array(shape, "float32", tally) for shape in shapes), **keywords)
    return tally.operations


@pytest.mark.parametrize(
    ("expected", "function", "shapes", "keywords"),
    [
        (2 * 3 * 4 * 5, nn.matmul, [(3, 4), (4, 5)], {}),  # 60 without the additions
        (2 * 7 * 6 * 3 * 4 * 5, nn.matmul, [(7, 1, 3, 4), (6, 4, 5)], {}),  # batches broadcast
        (2 * 3 * 4, nn.matmul, [(3, 4), (4,)], {}),
        (2 * 4, nn.matmul, [(4,), (4,)], {}),
        (2 * 3 * 4 * 5 + 3 * 5, nn.linear, [(3, 4), (5, 4), (5,)], {}),
        (3 * 5, nn.outer, [(3,), (5,)], {}),
        (2 * 2 * 6 * 7 * 4 * 3 * 9, nn.conv2d, [(2, 3, 8, 9), (4, 3, 3, 3)], {}),  # out 6 x 7
        (576 * (2 * 9 + 1), nn.conv2d, [(2, 4, 8, 9), (4, 1, 3, 3), (4,)], {"padding": 1, "groups": 4}),  # 576 results
        (2 * 2 * 3 * 8 * 4 * 5, nn.conv_transpose1d, [(2, 3, 8), (3, 4, 5)], {"stride": 2}),  # by inputs, not outputs
        (60 * (2 * 4 + 1 + 5 + 2 * 4), nn.scaled_dot_product_attention, [(2, 5, 4), (2, 6, 4), (2, 6, 4)], {}),
        (12, nn.relu, [(3, 4)], {}),
        (48, nn.sigmoid, [(3, 4)], {}),
        (12, nn.add, [(3, 1), (4,)], {}),  # 3 if not broadcast
        (12, nn.sum, [(3, 4)], {"dim": 1}),
        (12 + 3, nn.mean, [(3, 4)], {"dim": 1}),
        (5 * 12, nn.softmax, [(3, 4)], {"dim": -1}),
        (12, nn.cumsum, [(3, 4)], {"dim": 1}),  # 30 as a window for each prefix
        (2 * 3 * (2 * 2) * 4, nn.max_pool2d, [(2, 3, 4, 4)], {"kernel_size": 2}),
        (2 * 3 * (2 * 2) * 5, nn.avg_pool2d, [(2, 3, 4, 4)], {"kernel_size": 2}),
        (30, nn.amax, [(2, 3, 5)], {}),
        # 7 steps of 2 rows: products of 5 inputs and a state of 3 into 12 gates, and 30 more for each of the state
        (7 * 2 * (2 * 12 * (5 + 3) + 30 * 3), lambda x, h, c, *w: nn.lstm(x, (h, c), w),
         [(7, 2, 5), (1, 2, 3), (1, 2, 3), (12, 5), (12, 3), (12,), (12,)], {}),
        (7 * 2 * 2 * (2 * 9 * (5 + 3) + 23 * 3), lambda x, h, *w: nn.gru(x, h, w, bidirectional=True, batch_first=True),
         [(2, 7, 5), (2, 2, 3), *2 * [(9, 5), (9, 3), (9,), (9,)]], {}),
        (0, nn.permute, [(3, 4)], {"dims": (1, 0)}),
        (0, nn.dropout, [(3, 4)], {}),
    ],
)  # fmt: skip
def test_operations_by_hand(expected, function, shapes, keywords):
    assert counted(function, *shapes, **keywords) == expected


@pytest.mark.parametrize(
    ("expected", "equation", "shapes"),
    [
        (2 * 3 * 4 * 5, "ij,jk->ik", [(3, 4), (4, 5)]),
        (3 * 5, "i,j->ij", [(3,), (5,)]),  # 30 if an addition is counted where nothing is folded
        (2 * 12, "ij, ij -> i", [(3, 4), (3, 4)]),
        (3 * 3 * 4 * 5 * 6, "ij,jk,kl->il", [(3, 4), (4, 5), (5, 6)]),
        (0, "ii->i", [(4, 4)]),
    ],
)
def test_operations_of_einsum(expected, equation, shapes):
    assert counted(lambda *x: nn.einsum(equation, *x), *shapes) == expected


def test_operators_count_as_their_functions_do():
    assert counted(lambda x, y: -((x * y + 1.0) ** 2) / (2.0 - y), (3, 4), (4,)) == 5 * 12 + 4  # 2 - y on y alone
    assert counted(lambda x, y: x[1:, None] @ y, (3, 4), (4, 5)) == 2 * 2 * 4 * 5


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS, ids=[f"{i}-{c[0]}" for i, c in enumerate(CALLS)])
def test_results_have_the_shapes_and_types_that_jax_gives_them(name, arguments, keywords):
    tally = Tally()
    given = jax.tree.map(lambda x: Array(x.shape, str(x.dtype), tally) if isinstance(x, np.ndarray) else x, arguments)
    found = getattr(nn, name)(*given, **keywords)

    flat, places = jax.tree.flatten(arguments)
    held = [i for i, x in enumerate(flat) if isinstance(x, np.ndarray)]

    def call(*arrays):
        filled = list(flat)
        for place, x in zip(held, arrays, strict=True):
            filled[place] = x
        return getattr(jax_nn, name)(*jax.tree.unflatten(places, filled), **keywords)

    with jax.enable_x64(True):
        expected = jax.eval_shape(call, *(flat[i] for i in held))
    seen = [(x.shape, x.dtype) for x in (found if isinstance(found, tuple) else (found,))]
    assert seen == [(tuple(x.shape), str(x.dtype)) for x in jax.tree.leaves(expected)]


def test_the_namespace_is_whole():
    def names(module):
        return {name for name, value in vars(module).items() if inspect.isfunction(value)}

    assert names(nn) == names(jax_nn)


@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_tasks_have_the_operations_that_xla_counts(task_id):
    task = catalog.get(task_id)
    for size in ("cpu", "kb"):
        if task_id not in XLA_COUNTS_OTHERWISE:
            assert count(task, size).operations / xla_count(task, size) == pytest.approx(1, abs=0.35)
        written = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in abstract(task, size)]
        assert count(task, size).output_bytes == sum(written)


@pytest.mark.parametrize("task_id", [t.id for t in catalog.TASKS.values() if t.family in ("matmul", "attention")])
def test_products_have_exactly_the_operations_that_xla_counts(task_id):
    assert count(catalog.get(task_id), "kb").operations / xla_count(catalog.get(task_id), "kb") == pytest.approx(
        1, abs=1e-3
    )


def test_a_scan_has_an_operation_an_element():
    task = catalog.get("1_089")
    assert count(task, "kb").operations == np.prod(task.arrays_at("kb")[0].shape)


@pytest.mark.parametrize(
    "source", ["return nn.relu(x.astype(int))", "return nn.frobnicate(x)", "return nn.matmul(x, x)"]
)
def test_what_cannot_be_counted_names_the_task(source):
    task = dataclasses.replace(catalog.get("1_019"), source=f"def forward(nn, x):\n    {source}\n", sources_at={})
    with pytest.raises(ValueError, match=r"operations of task 1_019 cannot be counted at size cpu: .+"):
        count(task, "cpu")


def test_bytes_are_those_of_inputs_and_outputs():
    source = "def forward(nn, x, y):\n    return nn.argmax(x, dim=1), x[0] * y\n"
    arrays = (TaskArray("x", (3, 5)), TaskArray("y", (5,), "float16"))
    found = count(dataclasses.replace(catalog.get("1_019"), source=source, sizes={"cpu": arrays}), "cpu")
    assert found == Count(operations=15 + 5, input_bytes=4 * 15 + 2 * 5, output_bytes=8 * 3 + 4 * 5)


def xla_count(task, size):
    """Operations by XLA's cost analysis, which tells those of exp, log and the like apart."""
    forward = compile_forward(task.source_at(size))
    arrays = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in task.arrays_at(size)]
    cost = jax.jit(lambda *operands: forward(jax_nn, *operands)).lower(*arrays).cost_analysis()
    return (cost.get("flops") or 0) + (cost.get("transcendentals") or 0)
