"""Matrix products by cuBLAS on CuPy's current stream, which may be recording a graph: CuPy's own refuse to then."""

import functools
import itertools
import math
from pathlib import Path

import cupy as cp
import numpy as np

from evaluator import _core

_NUMBERS = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
_DEFAULT = "libcublas.so.13"


def matmul(x: cp.ndarray, y: cp.ndarray, out: cp.ndarray | None = None, dtype: str | None = None) -> cp.ndarray:
    """x [*, m, k] @ y [*, k, n] in full precision (float32 stays float32), as `cupy.matmul` gives it; vectors too.

    `dtype` says what the bits are where CuPy has no name for it (bfloat16). Operands whose last two dimensions are
    contiguous either way round are read in place; others are copied first. cuBLAS is given addresses alone: TypeError
    where dtypes differ or are none of its own, ValueError where shapes, or `out`, do not fit.
    """
    number = _NUMBERS.get(dtype or x.dtype.name)
    if number is None or x.dtype != y.dtype:
        raise TypeError(f"matmul: dtypes {x.dtype} and {y.dtype}, expected one of {', '.join(_NUMBERS)} for both")
    if x.ndim == 1 or y.ndim == 1:
        return _with_vectors(x, y)
    batch = _broadcast(x.shape[:-2], y.shape[:-2])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if y.shape[-2] != k:
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape} do not fit: {k} columns meet {y.shape[-2]} rows")
    out = _target(out, (*batch, m, n), x.dtype)
    if out.size == 0 or k == 0:
        out.fill(0)
        return out
    if y.ndim == 2 and x.ndim > 2 and x.flags.c_contiguous:  # one product of all rows
        return matmul(x.reshape(-1, k), y, out.reshape(-1, n), dtype).reshape(*batch, m, n)
    x, y = _readable(x, batch), _readable(y, batch)  # copies live until the product is queued
    target = _core.CublasMatrix(out.data.ptr, False, n, m * n)
    stream = cp.cuda.get_current_stream().ptr
    a, b = _matrix(x, batch), _matrix(y, batch)
    assert a is not None
    assert b is not None
    _handle(cp.cuda.Device().id, stream).matmul(stream, number, math.prod(batch), m, n, k, a, b, target)
    return out


def _target(out: cp.ndarray | None, shape: tuple[int, ...], dtype: np.dtype) -> cp.ndarray:
    if out is None:
        return cp.empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        seen = f"{'' if out.flags.c_contiguous else 'scattered '}{out.dtype} of shape {out.shape}"
        raise ValueError(f"matmul: out is {seen}, expected contiguous {dtype} of shape {shape}")
    return out


def _with_vectors(x: cp.ndarray, y: cp.ndarray) -> cp.ndarray:
    found = matmul(x[None] if x.ndim == 1 else x, y[:, None] if y.ndim == 1 else y)
    if y.ndim == 1:
        found = found[..., 0]
    return found[..., 0, :] if x.ndim == 1 and y.ndim > 1 else found[..., 0] if x.ndim == 1 else found


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(cp.broadcast_shapes(one, other)) if one != other else one


def _readable(x: cp.ndarray, batch: tuple[int, ...]) -> cp.ndarray:
    """`x`, or a copy that cuBLAS can read."""
    if _matrix(x, batch) is not None:
        return x
    return cp.ascontiguousarray(x if x.ndim == 2 else cp.broadcast_to(x, (*batch, *x.shape[-2:])))


def _matrix(x: cp.ndarray, batch: tuple[int, ...]) -> _core.CublasMatrix | None:
    """How cuBLAS reads `x` for a batch of that shape; None where it cannot."""
    rows, columns = x.shape[-2:]
    down, across = (step // x.dtype.itemsize for step in x.strides[-2:])
    stride = _batch_stride(x, batch)
    if stride is None:
        return None
    # The step along a dimension of length 1 says nothing.
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return _core.CublasMatrix(x.data.ptr, False, columns if rows == 1 else down, stride)
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return _core.CublasMatrix(x.data.ptr, True, rows if columns == 1 else across, stride)
    return None


def _batch_stride(x: cp.ndarray, batch: tuple[int, ...]) -> int | None:
    """Elements from one matrix to the next; 0 where all of the batch share one, None where the steps differ."""
    if x.ndim == 2 or math.prod(x.shape[:-2]) == 1:
        return 0
    if x.shape[:-2] != batch:
        return None
    steps = [(length, step) for length, step in zip(x.shape[:-2], x.strides[:-2], strict=True) if length > 1]
    uniform = all(outer == step * length for (_, outer), (length, step) in itertools.pairwise(steps))
    return steps[-1][1] // x.dtype.itemsize if uniform else None


@functools.cache
def _handle(device: int, stream: int) -> _core.Cublas:
    """One for every stream: products that run side by side must not have the same workspace."""
    return _core.Cublas(_library())


def _library() -> str:
    """The cuBLAS that CuPy has loaded, by the map of this process; else a name for the loader to find."""
    cp.cuda.device.get_cublas_handle()
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[5] if line.count("/") else ""
        if Path(path).name.startswith("libcublas.so"):
            return path
    return _DEFAULT
