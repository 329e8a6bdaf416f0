"""Matrix products on CuPy arrays, in full float32 by cuBLAS, with PyTorch's names, arguments and values."""

import math
import re

import cupy as cp

from evaluator.nn.cupy_nn import cublas, fused
from evaluator.nn.cupy_nn.array import operand
from evaluator.nn.cupy_nn.rows import softmax


def matmul(x: cp.ndarray, y: cp.ndarray) -> cp.ndarray:
    return operand(cublas.matmul(x, y))


def bmm(x: cp.ndarray, y: cp.ndarray) -> cp.ndarray:
    """Product of [B, N, K] and [B, K, M]."""
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise ValueError(f"bmm: needs shapes [B, N, K] and [B, K, M], got {x.shape} and {y.shape}")
    return matmul(x, y)


def linear(x: cp.ndarray, weight: cp.ndarray, bias: cp.ndarray | None = None) -> cp.ndarray:
    """x [..., K] times the transpose of weight [M, K], plus bias [M]; one product, whatever the rank of x."""
    rows = x.reshape(-1, x.shape[-1])
    product = matmul(rows, weight.T)
    if bias is not None:
        product = fused.apply("a + b", product, bias) if product.dtype == cp.float32 else product + bias
    return product.reshape(*x.shape[:-1], weight.shape[0])


def einsum(equation: str, *operands: cp.ndarray) -> cp.ndarray:
    """A contraction of two float32 arrays is one product by cuBLAS; CuPy's own way cannot be recorded into a graph."""
    found = _contraction(equation.replace(" ", ""), *operands) if len(operands) == 2 else None
    return operand(cp.einsum(equation, *operands) if found is None else found)


def _contraction(equation: str, x: cp.ndarray, y: cp.ndarray) -> cp.ndarray | None:
    """Both arrays as batches of matrices, multiplied; None where the equation is no such product, or does not fit."""
    parts = re.fullmatch(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)", equation)
    if parts is None or not x.dtype == y.dtype == cp.float32:
        return None
    left, right, out = parts.groups()
    summed = [letter for letter in left if letter in right and letter not in out]
    batch = [letter for letter in out if letter in left and letter in right]
    rows, columns = ([letter for letter in out if letter not in other] for other in (right, left))
    of_x, of_y, of_out = [*batch, *rows, *summed], [*batch, *summed, *columns], [*batch, *rows, *columns]
    if not summed or any(sorted(a) != sorted(b) for a, b in ((left, of_x), (right, of_y), (out, of_out))):
        return None
    sizes = dict(zip(left, x.shape, strict=False)) | dict(zip(right, y.shape, strict=False))
    if x.shape != tuple(map(sizes.get, left)) or y.shape != tuple(map(sizes.get, right)):
        return None
    shape = [sizes[letter] for letter in batch]
    m, n, k = (math.prod(sizes[letter] for letter in letters) for letters in (rows, columns, summed))
    a = cp.transpose(x, tuple(map(left.index, of_x))).reshape(*shape, m, k)
    b = cp.transpose(y, tuple(map(right.index, of_y))).reshape(*shape, k, n)
    product = cublas.matmul(a, b).reshape([sizes[letter] for letter in of_out])
    return cp.transpose(product, tuple(map(of_out.index, out)))


def outer(x: cp.ndarray, y: cp.ndarray) -> cp.ndarray:
    return x[:, None] * y[None, :]


def scaled_dot_product_attention(
    query: cp.ndarray, key: cp.ndarray, value: cp.ndarray, is_causal: bool = False
) -> cp.ndarray:
    """softmax(Q K^T / sqrt(d)) V over [..., T, d]; with `is_causal` a row sees the columns up to its own.

    Two products and a softmax in float32, without TF32: PyTorch's arithmetic for float32, though not its fused kernel.
    """
    scores = matmul(query, cp.swapaxes(key, -1, -2)) * (query.shape[-1] ** -0.5)
    if is_causal:
        rows, columns = scores.shape[-2:]
        hidden = cp.arange(columns)[None, :] > cp.arange(rows)[:, None]
        scores = (
            fused.apply("b ? c : a", scores, hidden, -float("inf"))
            if scores.dtype == cp.float32
            else cp.where(hidden, -cp.inf, scores)
        )
    return matmul(softmax(scores, -1), value)
