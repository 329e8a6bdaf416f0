"""The catalog agrees with the benchmark's facts and with the rules of the `cpu` size."""

import json
import math
import pathlib
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog, user
from evaluator.tasks.arrays import draw

FACTS = json.loads((pathlib.Path(__file__).parents[2] / "data" / "kernelbench.json").read_text())["tasks"]
REQUIRED = ["1_001", "1_004", "1_012", "1_019", "1_023", "1_026", "1_040", "1_047", "1_051", "1_089", "1_094", "2_014"]
DRAWS = {"uniform[0,1)": "uniform(0,1)", "normal": "normal(0,1)"}
INIT_OF = {
    **DRAWS,
    "(uniform[0,1) * uniform[0,1) (one scalar))": "uniform(0,1)*scalar:uniform(0,1)",
    "constant 3.14": "constant(3.14)",
    "randint[0,2).bool": "integers(0,2)",
    "randint[0,10)": "integers(0,10)",
    "randint[0,4096)": "integers(0,4096)",
    "((randint[0,2).float * 2) - 1)": "sign(uniform(-1,1))",
    "softmax((uniform[0,1) * uniform[0,1) (one scalar)),dim=-1)": "softmax(uniform(0,1)*scalar:uniform(0,1))",
    **{f"softmax({drawn},dim=-1)": f"softmax({init})" for drawn, init in DRAWS.items()},
    **{f"{part}({drawn})": f"{part}({init})" for part in ("triu", "tril") for drawn, init in DRAWS.items()},
    **{f"(({drawn} + ({drawn}).T) / 2)": f"symmetric({init})" for drawn, init in DRAWS.items()},
}

LSTM, GRU = ("h0", "c0"), ("h0",)
# Inputs that the benchmark draws inside its model: a mask, and states from the standard normal distribution.
OURS = {
    "2_066": {"kb": ("kept",), "kb_v0": ("kept",)},
    "3_033": {"kb_v0": ("initial_hidden",)},
    "3_034": {"kb_v0": ("hidden",)},
    "3_035": {"kb": LSTM, "kb_v0": LSTM},
    **{task_id: {"kb_v0": LSTM} for task_id in ("3_036", "3_037", "3_038")},
    **{task_id: {"kb_v0": GRU} for task_id in ("3_039", "3_040", "3_041", "3_042")},
}


def specs(listed):
    """Python numbers of the benchmark are arrays of no dimension here."""
    numbers = {"python float": "float32"}
    return [(fact["name"], tuple(fact["shape"]), numbers.get(fact["dtype"], fact["dtype"])) for fact in listed]


@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_a_task_is_filed_under_its_own_id(task_id):
    assert catalog.TASKS[task_id].id == task_id


@pytest.mark.parametrize("task_id", REQUIRED)
def test_every_task_of_the_first_issue_is_there(task_id):
    assert catalog.get(task_id).id == task_id


@pytest.mark.parametrize("size", ["kb", "kb_v0"])
@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_benchmark_sizes_are_the_benchmarks(task_id, size):
    task, fact = catalog.TASKS[task_id], FACTS[task_id][size]
    arrays = task.sizes[size]
    assert task.name == FACTS[task_id]["name"]
    inputs = [a for a in arrays if not a.parameter and a.name not in OURS.get(task_id, {}).get(size, ())]
    assert specs(fact["inputs"]) == [(a.name, a.shape, a.dtype) for a in inputs]
    weights = [given for given in fact["params"] if not given.get("buffer")]
    assert specs(weights) == [(a.name, a.shape, a.dtype) for a in arrays if a.parameter]
    assert [INIT_OF[given["distribution"]] for given in fact["inputs"]] == [a.init for a in inputs]


@pytest.mark.parametrize(("task_id", "size"), [(task_id, size) for task_id, sizes in OURS.items() for size in sizes])
def test_what_the_benchmark_draws_in_its_model_is_an_input_of_the_same_distribution(task_id, size):
    arrays = {array.name: array for array in catalog.TASKS[task_id].sizes[size]}
    init = "integers(0,5)" if task_id == "2_066" else "normal(0,1)"
    assert all(arrays[name].init == init for name in OURS[task_id][size])


def test_dropout_keeps_four_elements_in_five_and_scales_them():
    x, kept, weight, bias = draw(catalog.get("2_066"), "cpu", seed=1)
    assert kept.dtype == bool
    assert kept.mean() == pytest.approx(0.8, abs=0.01)
    logits = np.where(kept, x @ weight.T + bias, 0) * 1.25
    powers = np.exp(logits)
    (seen,) = run.run(catalog.get("2_066").source, jax_nn, [jnp.asarray(array) for array in (x, kept, weight, bias)])
    np.testing.assert_allclose(seen, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_a_task_may_be_degenerate_at_some_of_its_sizes():
    assert [size for size in ("cpu", "kb", "kb_v0") if catalog.get("2_066").degenerate_at(size)] == ["kb_v0"]
    assert catalog.get("2_080").degenerate_at("cpu")
    assert not catalog.get("1_019").degenerate_at("kb")


@pytest.mark.parametrize("size", ["kb", "kb_v0"])
@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_outputs_at_benchmark_sizes_are_the_benchmarks(task_id, size):
    expected = [(tuple(fact["shape"]), fact["dtype"]) for fact in FACTS[task_id][size]["outputs"]]
    assert run.abstract(catalog.TASKS[task_id], size) == expected


def distribution(array, arrays):
    """As written, but for layers whose range follows from the shape of their weight, as PyTorch initialises them."""
    if array.init == f"integers(0,{arrays[0].shape[-1]})":
        return "by number of classes"
    weights = {other.name: other.shape for other in arrays if other.parameter}
    states = [shape[1] for name, shape in weights.items() if "weight_hh_l" in name]
    if states and array.init == f"uniform(-{states[0] ** -0.5:.6g},{states[0] ** -0.5:.6g})":
        return "by size of state"
    if len(array.shape) in (2, 3) and array.init == f"normal(0,{array.shape[-2] ** -0.5:.6g})":
        return "by features"
    if array.name.endswith("in_proj_weight"):
        xavier = f"{math.sqrt(6 / (array.shape[0] + array.shape[1])):.6g}"
        return "by Xavier" if array.init == f"uniform(-{xavier},{xavier})" else array.init
    shape = weights.get(array.name.replace(".bias", ".weight"), ())
    if len(shape) < 2:
        return array.init
    bound = f"{math.prod(shape[1:]) ** -0.5:.6g}"
    deviation = f"{math.sqrt(2 / (shape[0] * math.prod(shape[2:]))):.6g}"
    known = {f"uniform(-{bound},{bound})": "by fan-in", f"normal(0,{deviation})": "by fan-out"}
    return known.get(array.init, array.init)


@pytest.mark.parametrize("task_id", catalog.TASKS)
def test_cpu_size_is_the_benchmarks_made_small(task_id):
    small, large = catalog.TASKS[task_id].sizes["cpu"], catalog.TASKS[task_id].sizes["kb"]
    assert [(a.name, a.dtype, a.parameter, len(a.shape)) for a in small] == [
        (a.name, a.dtype, a.parameter, len(a.shape)) for a in large
    ]
    assert [distribution(a, small) for a in small] == [distribution(a, large) for a in large]
    assert any(length % 32 for array in small for length in array.shape)
    assert sum(math.prod(array.shape) for array in small) <= 4_000_000


def test_outputs_of_argmax_are_int64():
    assert run.abstract(catalog.get("1_051"), "cpu") == [((16, 415), "int64")]


def test_rows_are_scaled_by_a_diagonal_product_at_the_first_version_only():
    task = catalog.get("1_012")
    assert "diag" in task.source_at("kb_v0")
    assert "diag" not in task.source_at("kb")


def test_an_unknown_id_names_close_ones():
    with pytest.raises(KeyError, match=r"no task '1_0012'; close ids: 1_012"):
        catalog.get("1_0012")


def test_a_name_in_place_of_an_id_names_the_id():
    with pytest.raises(KeyError, match="1_023"):
        catalog.get("softmax")


def test_an_unknown_size_names_the_sizes():
    with pytest.raises(KeyError, match="cpu, kb, kb_v0"):
        catalog.get("1_019").arrays_at("huge")


def test_reading_the_catalog_does_not_load_jax():
    code = "import sys; import evaluator.tasks.catalog, evaluator.tasks.text; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_users_task_can_have_every_family_of_the_catalog():
    assert {task.family for task in catalog.TASKS.values()} <= set(user._FAMILIES)
