"""Library steps as a program calls them: cp.matmul, `@` and `evaluator.lib`, recorded into the plan."""

from evaluator.nn.lengths import each
from evaluator.program import library
from evaluator.program.dtypes import FLOAT_DTYPES
from evaluator.program.tracer.arrays import Array, allocate
from evaluator.program.tracer.faults import refused


def matmul(a, b, out: Array | None = None) -> Array:
    """cp.matmul for one float dtype; batches equal, or on one side only."""
    _check_arrays("matmul", a, b)
    left = a.reshape((1, *a.shape)) if a.ndim == 1 else a
    right = b.reshape((*b.shape, 1)) if b.ndim == 1 else b
    rows = () if a.ndim == 1 else (left.shape[-2],)
    columns = () if b.ndim == 1 else (right.shape[-1],)
    batch = _batch("matmul", left, right)
    return _product("matmul", left, right, False, False, out, (*batch, *rows, *columns))


def gemm(a, b, transpose_a=False, transpose_b=False, out=None) -> Array:
    """Product of the last two dimensions, either operand turned around."""
    _check_arrays("gemm", a, b)
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(f"gemm: shapes {a.shape} and {b.shape}; expected matrices, or batches of them")
    batch = _batch("gemm", a, b)
    shape = (*batch, a.shape[-1 if transpose_a else -2], b.shape[-2 if transpose_b else -1])
    return _product("gemm", a, b, bool(transpose_a), bool(transpose_b), out, shape)


def conv(x, weight, stride=1, padding=0, dilation=1, groups=1, transposed=False, output_padding=0, out=None) -> Array:
    """A convolution over one to three dimensions after the channel, as PyTorch defines it, without bias."""
    _check_arrays("conv", x, weight, float32=True)
    ndim = x.ndim - 2
    lengths = {
        "stride": each(stride, ndim),
        "padding": each(padding, ndim),
        "dilation": each(dilation, ndim),
        "output_padding": each(output_padding, ndim),
    }
    shape = library.conv_shape(x.shape, weight.shape, groups=groups, transposed=bool(transposed), **lengths)
    result = _target("conv", out, shape, x, weight)
    step = {"op": "conv", "x": x.view(), "weight": weight.view(), "out": result.view()}
    step |= {name: list(value) for name, value in lengths.items()}
    x._recorder.step({**step, "groups": groups, "transposed": bool(transposed)})
    return result


def attention(query, key, value, causal=False, out=None) -> Array:
    """softmax(query key^T / sqrt(d)) value over [..., tokens, width]."""
    _check_arrays("attention", query, key, value, float32=True)
    shape = library.attention_shape(query.shape, key.shape, value.shape)
    result = _target("attention", out, shape, query, key, value)
    views = {"query": query.view(), "key": key.view(), "value": value.view(), "out": result.view()}
    query._recorder.step({"op": "attention", **views, "causal": bool(causal)})
    return result


def _product(
    name: str, a: Array, b: Array, transpose_a: bool, transpose_b: bool, out: Array | None, shape: tuple[int, ...]
) -> Array:
    rows, inner = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    middle, columns = b.shape[-2:][::-1] if transpose_b else b.shape[-2:]
    if inner != middle:
        raise ValueError(f"{name}: shapes {a.shape} and {b.shape} do not fit: {inner} columns meet {middle} rows")
    result = _target(name, out, shape, a, b)
    matrix = result.reshape((*_batch(name, a, b), rows, columns))
    views = {"a": a.view(), "b": b.view(), "out": matrix.view()}
    a._recorder.step({"op": "matmul", **views, "transpose_a": transpose_a, "transpose_b": transpose_b})
    return result


def _batch(name: str, a: Array, b: Array) -> tuple[int, ...]:
    left, right = a.shape[:-2], b.shape[:-2]
    if left and right and left != right:
        raise refused(f"{name}: batches {left} and {right}; they must be equal, or on one side")
    return left or right


def _check_arrays(name: str, *operands, float32: bool = False) -> None:
    for operand in operands:
        if not isinstance(operand, Array):
            raise TypeError(f"{name} of a {type(operand).__name__}, expected arrays")
        if not operand.ndim:
            raise ValueError(f"{name}: an operand has no dimensions")
    dtypes = {operand.dtype.name for operand in operands}
    if len(dtypes) != 1 or not dtypes <= ({"float32"} if float32 else FLOAT_DTYPES):
        wanted = "all must be float32" if float32 else "all must have the same float dtype"
        raise refused(f"{name} of {' and '.join(operand.dtype.name for operand in operands)}; {wanted}")


def _target(name: str, out, shape: tuple[int, ...], *operands: Array) -> Array:
    """A new array for the result, or `out` where it fits."""
    first = operands[0]
    if out is None:
        return allocate(first._recorder, shape, first.dtype)
    if not isinstance(out, Array):
        raise TypeError(f"{name}: out is a {type(out).__name__}, expected an array")
    if out.shape != shape or out.dtype != first.dtype:
        seen = f"shape {out.shape} and dtype {out.dtype.name}"
        raise refused(f"{name}: out has {seen}, expected {shape}, {first.dtype.name}")
    if any(out._overlaps(operand) for operand in operands):
        raise refused(f"{name}: out overlaps an operand; use another array")
    return out
