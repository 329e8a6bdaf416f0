import math
import re

import numpy as np
import pytest

from cudal1_jax.corpus import pointwise, total
from cudal1_jax.corpus.pointwise import Kind, Step
from evaluator.nn import jax_nn

CUDA = {
    "fmaxf": np.fmax,
    "fminf": np.fmin,
    "expf": np.exp,
    "expm1f": np.expm1,
    "log1pf": np.log1p,
    "logf": np.log,
    "sqrtf": np.sqrt,
    "tanhf": np.tanh,
    "fabsf": np.abs,
    "erff": np.vectorize(math.erf),
    "where": np.where,
}


def evaluate_cuda(text: str, **values: np.ndarray) -> np.ndarray:
    """Value of a CUDA expression of the corpus: literals without their f, conditionals as numpy's where."""
    text = re.sub(r"(\d+\.\d+)f\b", r"\1", text)
    conditional = re.search(r"\((\w+ > 0\.0 \? [^:]+ : .+)\)$", text)
    if conditional:
        text = text.replace(conditional[1], _where(conditional[1]))
    elif "?" in text:
        text = _where(text)
    return eval(text, dict(CUDA), values)


def _where(text: str) -> str:
    test, rest = text.split(" ? ")
    first, second = rest.split(" : ")
    return f"where({test}, {first}, {second})"


def evaluate_nn(text: str, **values: np.ndarray) -> np.ndarray:
    return np.asarray(eval(text, {"nn": jax_nn}, values))


def inputs(kind: Kind) -> np.ndarray:
    values = np.linspace(-4.0, 4.0, 161, dtype=np.float32)
    return np.abs(values) + np.float32(0.5) if "positive" in kind.needs else values


def step(kind: Kind, operand: str | None = None) -> Step:
    return Step(kind, tuple(pointwise.CONSTANTS[letter][0] for letter in kind.constants), operand)


@pytest.mark.parametrize("kind", pointwise.UNARY, ids=lambda kind: kind.name)
def test_a_step_means_the_same_in_both_languages(kind):
    x = inputs(kind)
    expected = evaluate_nn(step(kind).nn("v"), v=x)
    np.testing.assert_allclose(evaluate_cuda(step(kind).cuda("v"), v=x), expected, rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize("kind", pointwise.BINARY, ids=lambda kind: kind.name)
def test_a_step_with_an_operand_means_the_same_in_both_languages(kind):
    x, y = inputs(kind), inputs(kind)[::-1].copy()
    expected = evaluate_nn(step(kind, "y").nn("v"), v=x, y=y)
    np.testing.assert_allclose(evaluate_cuda(step(kind, "y").cuda("v", "y"), v=x, y=y), expected, rtol=3e-6)


def test_the_element_of_the_huber_loss_is_that_of_nn():
    x = np.linspace(-3.0, 3.0, 61, dtype=np.float32)
    expected = np.asarray(jax_nn.smooth_l1_loss(x, np.zeros_like(x), reduction="none"))
    np.testing.assert_allclose(evaluate_cuda(step(total.HUBER).cuda("v"), v=x), expected, rtol=1e-6)


def test_an_integer_constant_becomes_a_float_literal():
    # As an integer, v / 2 would still be a float division, but 1 / 2 in the same place would be zero.
    assert Step(pointwise.UNARY[0], ("2",)).kind.name == "relu"
    division = next(kind for kind in pointwise.UNARY if kind.name == "div_c")
    assert Step(division, ("2",)).cuda("v") == "v / 2.0f"
    assert Step(division, ("2",)).nn("v") == "v / 2"


def test_a_named_constant_is_an_argument_in_cuda_only():
    kind = next(kind for kind in pointwise.UNARY if kind.name == "mul_c")
    named = Step(kind, ("0.5",), named=("alpha",))
    assert (named.cuda("v"), named.nn("v")) == ("v * alpha", "v * 0.5")


def test_exponentials_are_drawn_for_bounded_values_only():
    from random import Random

    rng = Random(0)
    drawn = {pointwise.unary(rng, frozenset()).kind.name for _ in range(2000)}
    assert not drawn & {"exp", "log", "sqrt", "reciprocal"}
    assert "exp" in {pointwise.unary(rng, pointwise.BOUNDED).kind.name for _ in range(2000)}
