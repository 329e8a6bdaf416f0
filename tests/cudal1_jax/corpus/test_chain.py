from random import Random

import numpy as np
import pytest

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import pointwise
from cudal1_jax.corpus.chain import Chain, Formula, Operand
from cudal1_jax.corpus.pointwise import Step
from evaluator.nn import jax_nn
from evaluator.nn.run import run

KINDS = {kind.name: kind for kind in (*pointwise.UNARY, *pointwise.BINARY)}
Y = Operand("y", "full", "y")


def chain(*steps: str, origin: str | None = None) -> Chain:
    """Steps by name; "mul:y" has the operand y, "mul:x" the value from before the chain."""
    made = []
    for text in steps:
        name, _, operand = text.partition(":")
        made.append(Step(KINDS[name], tuple("0.5" for _ in KINDS[name].constants), operand or None))
    return Chain(tuple(made), (Y,) if any(text.endswith(":y") for text in steps) else (), origin)


def formula(steps: Chain, nested: bool, start: str = "x") -> str:
    text = Formula(start, nested=nested, name="h")
    text.steps(steps)
    return text.source(("x", "y"))


@pytest.mark.parametrize("nested", [True, False])
def test_a_power_takes_the_whole_of_what_came_before(nested):
    # Without parentheses z * x**2 would square x alone.
    values = [np.float32([2.0]), np.float32([3.0])]
    (result,) = run(formula(chain("mul:y", "square"), nested), jax_nn, values)
    assert float(result[0]) == 36.0


def test_an_argument_of_a_call_needs_no_parentheses():
    assert "nn.relu(x + y)" in formula(chain("add:y", "relu"), nested=True)


def test_a_text_that_uses_its_value_twice_gets_a_name_for_it():
    source = formula(chain("add:y", "softsign"), nested=True)
    assert "h = x + y" in source
    assert "return h / (1.0 + nn.abs(h))" in source


@pytest.mark.parametrize("seed", range(40))
def test_nested_and_step_by_step_texts_have_the_same_value(seed):
    steps = chains.draw(Random(seed), 4, (Y,), origin="x")
    values = [np.linspace(-2, 2, 33, dtype=np.float32), np.linspace(1, -1, 33, dtype=np.float32)]
    (nested,) = run(formula(steps, nested=True), jax_nn, values)
    expected = values[0]
    for step in steps.steps:
        one = Formula("h", nested=False, name="h")
        one.apply(step.nn("{v}"), step.kind.infix)
        expected = run(f"def forward(nn, h, x, y):\n    return {one.open}\n", jax_nn, [expected, *values])[0]
    np.testing.assert_allclose(np.asarray(nested), np.asarray(expected), rtol=2e-6, atol=1e-6)


def test_one_step_that_uses_its_value_once_needs_no_variable():
    assert chains.statements(chain("relu"), "x[i]", {}) == ([], "fmaxf(x[i], 0.0f)")


def test_the_value_from_before_the_chain_is_kept():
    lines, last = chains.statements(chain("sigmoid", "mul:x", origin="x"), "x[i]", {})
    assert lines == ["float v0 = x[i];", "float v = 1.0f / (1.0f + expf(-v0));"]
    assert last == "v * v0"


def test_a_device_function_takes_the_operands_after_the_value():
    text = chains.device_function(chain("add:y", "relu"), "f")
    assert text == ["__device__ float f(float v, float y) {", "  v = v + y;", "  return fmaxf(v, 0.0f);", "}"]


def test_a_chain_that_must_not_round_has_exact_steps_only():
    for seed in range(50):
        assert all(step.kind.exact for step in chains.draw(Random(seed), 3, (Y,), exact=True).steps)


def test_a_formula_gives_no_argument_s_name_to_its_value():
    # A running value called y would hide the operand y from the steps that follow.
    for seed in range(200):
        assert Formula.drawn(Random(seed), "x", ("x", "y"))._name in {"x", "out", "h", "z"}
        assert Formula.drawn(Random(seed), "x", ("x", "y"), again=True)._name in {"out", "h", "z"}
