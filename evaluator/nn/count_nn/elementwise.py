"""Element-wise functions: each operation of the formula counts one for every element, and so does exp, log or tanh."""

from typing import Any

from evaluator.nn.count_nn.array import Array, elementwise


def add(x: Array, y: Any) -> Array:
    return elementwise(1, x, y)


sub = mul = div = minimum = maximum = add


def pow(x: Array, exponent: Any) -> Array:
    return elementwise(1, x, exponent)


def where(condition: Any, x: Any, y: Any) -> Array:
    chosen = [each for each in (x, y) if isinstance(each, Array)]
    return elementwise(1, condition, x, y).to(elementwise(0, *chosen).dtype)


def neg(x: Array) -> Array:
    return elementwise(1, x)


abs = sign = square = reciprocal = exp = expm1 = log = log1p = sqrt = rsqrt = sin = cos = erf = tanh = relu = neg


def clamp(x: Array, min: Any = None, max: Any = None) -> Array:
    return elementwise(sum(limit is not None for limit in (min, max)), x, *(y for y in (min, max) if y is not None))


def relu6(x: Array) -> Array:
    return elementwise(2, x)


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Comparison, product, choice."""
    return elementwise(3, x)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """Comparison, expm1, product, choice."""
    return elementwise(4, x)


def selu(x: Array) -> Array:
    return elementwise(5, x)


def celu(x: Array, alpha: float = 1.0) -> Array:
    """max(x, 0) + min(alpha expm1(x / alpha), 0)."""
    return elementwise(6, x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return elementwise(4, x)


def logsigmoid(x: Array) -> Array:
    """min(x, 0) - log1p(exp(-|x|))."""
    return elementwise(6, x)


def silu(x: Array) -> Array:
    return elementwise(5, x)


def gelu(x: Array, approximate: str = "none") -> Array:
    """0.5 x (1 + erf(c x)), or 0.5 x (1 + tanh(c (x + d x x x)))."""
    return elementwise(5 if approximate == "none" else 9, x)


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """Comparison, exp, log1p, choice; a product and a quotient more for another beta than 1."""
    return elementwise(4 if beta == 1 else 6, x)


def mish(x: Array) -> Array:
    return elementwise(6, x)


def softsign(x: Array) -> Array:
    return elementwise(3, x)


def tanhshrink(x: Array) -> Array:
    return elementwise(2, x)


def hardtanh(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    return elementwise(2, x)


def hardsigmoid(x: Array) -> Array:
    """clip(x + 3, 0, 6) / 6."""
    return elementwise(4, x)


def hardswish(x: Array) -> Array:
    return elementwise(5, x)


def dropout(x: Array, p: float = 0.5, training: bool = True) -> Array:
    return x


def operand(x: Array) -> Array:
    return x
