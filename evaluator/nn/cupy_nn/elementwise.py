"""Element-wise functions on CuPy arrays, with PyTorch's names, arguments and values: one kernel each in float32."""

from collections.abc import Callable
from typing import TypeAlias

import cupy as cp
from cupyx.scipy import special

from evaluator.nn.cupy_nn import fused
from evaluator.nn.cupy_nn.array import power
from evaluator.nn.cupy_nn.exact import elementwise as exact

Operand: TypeAlias = cp.ndarray | float


def _either(oracle: Callable[..., cp.ndarray], expression: str, *operands: Operand) -> cp.ndarray:
    """One kernel of `expression` in float32; `oracle`, made of CuPy's own functions, for float64 and integers."""
    arrays = [x for x in operands if isinstance(x, cp.ndarray)]
    if all(x.dtype.char in "f?" for x in arrays) and any(x.dtype.char == "f" for x in arrays):
        return fused.apply(expression, *operands)
    return oracle(*operands)


def add(x: Operand, y: Operand) -> cp.ndarray:
    return _either(cp.add, "a + b", x, y)


def sub(x: Operand, y: Operand) -> cp.ndarray:
    return _either(cp.subtract, "a - b", x, y)


def mul(x: Operand, y: Operand) -> cp.ndarray:
    return _either(cp.multiply, "a * b", x, y)


def div(x: Operand, y: Operand) -> cp.ndarray:
    return _either(cp.true_divide, "a / b", x, y)


def pow(x: cp.ndarray, exponent: Operand) -> cp.ndarray:
    return _either(cp.power, power(exponent), x, exponent)


def minimum(x: cp.ndarray, y: Operand) -> cp.ndarray:
    return _either(cp.minimum, "(a < b || a != a) ? a : b", x, y)


def maximum(x: cp.ndarray, y: Operand) -> cp.ndarray:
    return _either(cp.maximum, "(a > b || a != a) ? a : b", x, y)


def where(condition: cp.ndarray, x: Operand, y: Operand) -> cp.ndarray:
    return _either(cp.where, "a ? b : c", condition, x, y)


def neg(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.negative, "-a", x)


def abs(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.absolute, "fabsf(a)", x)


def sign(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.sign, "a != a ? a : (float)((a > 0.0f) - (a < 0.0f))", x)


def square(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.square, "a * a", x)


def reciprocal(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.reciprocal, "1.0f / a", x)


def exp(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.exp, "expf(a)", x)


def expm1(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.expm1, "expm1f(a)", x)


def log(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.log, "logf(a)", x)


def log1p(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.log1p, "log1pf(a)", x)


def sqrt(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.sqrt, "sqrtf(a)", x)


def rsqrt(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.rsqrt, "rsqrtf(a)", x)


def sin(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.sin, "sinf(a)", x)


def cos(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.cos, "cosf(a)", x)


def erf(x: cp.ndarray) -> cp.ndarray:
    return _either(special.erf, "erff(a)", x)


def clamp(x: cp.ndarray, min: Operand | None = None, max: Operand | None = None) -> cp.ndarray:
    """A bound that is None does not bind; where the lower one exceeds the upper one, the upper one holds."""
    if min is None and max is None:
        raise ValueError("clamp: give min, max or both")
    if max is None:
        return _either(cp.maximum, "a < b ? b : a", x, min)
    if min is None:
        return _either(cp.minimum, "a > b ? b : a", x, max)
    return _either(exact.clamp, "a != a ? a : fminf(fmaxf(a, b), c)", x, min, max)


def relu(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.relu, "a < 0.0f ? 0.0f : a", x)


def relu6(x: cp.ndarray) -> cp.ndarray:
    return clamp(x, 0.0, 6.0)


def leaky_relu(x: cp.ndarray, negative_slope: float = 0.01) -> cp.ndarray:
    return _either(exact.leaky_relu, "a > 0.0f ? a : a * b", x, negative_slope)


def elu(x: cp.ndarray, alpha: float = 1.0) -> cp.ndarray:
    return _either(exact.elu, "a > 0.0f ? a : b * expm1f(a)", x, alpha)


def selu(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.selu, "b * (a > 0.0f ? a : c * expm1f(a))", x, exact.SELU_SCALE, exact.SELU_ALPHA)


def celu(x: cp.ndarray, alpha: float = 1.0) -> cp.ndarray:
    return _either(exact.celu, "a > 0.0f ? a : b * expm1f(a / b)", x, alpha)


def sigmoid(x: cp.ndarray) -> cp.ndarray:
    return _either(special.expit, "1.0f / (1.0f + expf(-a))", x)


def logsigmoid(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.logsigmoid, "(a < 0.0f ? a : 0.0f) - log1pf(expf(-fabsf(a)))", x)


def tanh(x: cp.ndarray) -> cp.ndarray:
    return _either(cp.tanh, "tanhf(a)", x)


def silu(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.silu, "a / (1.0f + expf(-a))", x)


def gelu(x: cp.ndarray, approximate: str = "none") -> cp.ndarray:
    """The exact form by the error function, or with `approximate="tanh"` the one by tanh."""
    if approximate == "none":
        return _either(exact.gelu, "a * 0.5f * (1.0f + erff(a * 0.70710678118654752f))", x)
    if approximate == "tanh":
        cubic = "0.79788456080286536f * (a + 0.044715f * a * a * a)"
        return _either(exact.gelu_by_tanh, f"0.5f * a * (1.0f + tanhf({cubic}))", x)
    raise ValueError(f'gelu: approximate is {approximate!r}; it must be "none" or "tanh"')


def softplus(x: cp.ndarray, beta: float = 1.0, threshold: float = 20.0) -> cp.ndarray:
    """log(1 + exp(beta x)) / beta, and x itself where beta x exceeds `threshold`."""
    return _either(exact.softplus, "a * b > c ? a : log1pf(expf(a * b)) / b", x, beta, threshold)


def mish(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.mish, "a * tanhf(a > 20.0f ? a : log1pf(expf(a)))", x)


def softsign(x: cp.ndarray) -> cp.ndarray:
    """Three kernels, as in PyTorch."""
    return div(x, add(abs(x), 1.0))


def tanhshrink(x: cp.ndarray) -> cp.ndarray:
    """Two kernels, as in PyTorch."""
    return sub(x, tanh(x))


def hardtanh(x: cp.ndarray, min_val: float = -1.0, max_val: float = 1.0) -> cp.ndarray:
    return clamp(x, min_val, max_val)


def hardsigmoid(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.hardsigmoid, "a != a ? a : fminf(fmaxf(a + 3.0f, 0.0f), 6.0f) / 6.0f", x)


def hardswish(x: cp.ndarray) -> cp.ndarray:
    return _either(exact.hardswish, "a * (fminf(fmaxf(a + 3.0f, 0.0f), 6.0f) / 6.0f)", x)


def dropout(x: cp.ndarray, p: float = 0.5, training: bool = True) -> cp.ndarray:
    """What is expected of dropout: `x` itself. No random numbers are drawn, since outputs are compared.

    Correct only where what follows does not depend on which elements are kept, as in 2_083, whose `x` is all zeros.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is {p}; it must be between 0 and 1")
    return _either(exact.dropout, "a", x)
