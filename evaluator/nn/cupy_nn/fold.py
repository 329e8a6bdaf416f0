"""One engine for every reduction: rows (elements side by side) and columns (strided), split where few blocks would run.

A fold is CUDA text that defines, over floats: `struct Acc`, `Acc identity()`, `Acc map(float x, long long i, float p)`,
an associative `Acc combine(Acc a, Acc b)`, `Acc shift(Acc a, int lanes)` by warp shuffles, and
`Out finish(Acc a, long long n, float p)` with `typedef ... Out`. Where a fold is split, or runs over dimensions that do
not lie side by side, the first pass stores accumulators and a second one folds these.
"""

import dataclasses
import functools
import math

import cupy as cp
import numpy as np

from evaluator.nn.cupy_nn.fused import contiguous
from evaluator.nn.cupy_nn.launch import launch

_THREADS = 256
_BLOCKS = 1056  # eight blocks on each of 132 multiprocessors: enough to keep the memory busy
_SHORT = 256  # rows up to this length take a warp each
_LEAST_CHUNK = 4096  # elements that a block of a split row folds at the least
_MANY = 2**18  # columns that keep the device busy with few threads each


@dataclasses.dataclass(frozen=True)
class Fold:
    """A fold's CUDA text and the sizes of what it keeps."""

    text: str
    acc_floats: int = 1  # size of Acc in floats
    out: type = np.float32  # dtype of what finish gives
    out_numbers: int = 1  # numbers of that dtype per result; more than one adds a last dimension


def fold(kind: Fold, x: cp.ndarray, dims: tuple[int, ...], parameter: float = 0.0) -> cp.ndarray:
    """`kind` over `dims` (sorted, distinct, not negative) of a float32 array; the dimensions left keep their order.

    Returns an array of the shape left, plus a last dimension where the fold gives several numbers.
    """
    data = contiguous(x)
    plan = _plan(kind, x.shape, dims, data.data.ptr % 16 == 0)
    out = type(x)(plan.shape, kind.out)
    for step in plan.passes:
        target = cp.empty((step.accumulators, kind.acc_floats), cp.float32) if step.accumulators else out
        arguments = (data, target, *step.numbers, np.float32(parameter))
        launch(step.text, step.kernel, step.grid, step.block, arguments)
        data = target
    return out


@dataclasses.dataclass(frozen=True)
class _Pass:
    """One launch."""

    text: str
    kernel: str  # rows or columns
    grid: tuple[int, int]
    block: tuple[int, int]
    numbers: tuple[int, ...]  # outer, length, inner, chunk, count
    accumulators: int  # that it stores; 0 where it stores results


@dataclasses.dataclass(frozen=True)
class _Plan:
    shape: tuple[int, ...]  # of the result
    passes: tuple[_Pass, ...]


@functools.lru_cache(maxsize=4096)
def _plan(kind: Fold, shape: tuple[int, ...], dims: tuple[int, ...], aligned: bool) -> _Plan:
    """The passes over a contiguous array: the innermost run of dimensions first, each run split where that pays."""
    left = tuple(size for axis, size in enumerate(shape) if axis not in dims)
    result = (*left, kind.out_numbers) if kind.out_numbers > 1 else left
    count = math.prod(shape[axis] for axis in dims)
    if not math.prod(left):
        return _Plan(result, ())
    if not count:
        raise ValueError(f"cannot fold the empty dimensions {dims} of an array of shape {shape}")
    extents: list[
        tuple[tuple[int, int, int], int]
    ] = []  # (outer, length, inner), and the parts each length is cut into
    sizes = list(shape)
    for first, last in reversed(_runs(dims, shape)):
        outer, length = math.prod(sizes[:first]), math.prod(sizes[first : last + 1])
        inner = math.prod(sizes[last + 1 :])
        splits = _splits(outer, length, inner)
        if splits > 1:
            extents.append(((outer, length, inner), splits))
            length = splits
        extents.append(((outer, length, inner), 1))
        sizes[first : last + 1] = [1] * (last + 1 - first)
    final = len(extents) - 1
    passes = (_pass(kind, *extent, count, aligned, at > 0, at == final) for at, extent in enumerate(extents))
    return _Plan(result, tuple(passes))


def _runs(dims: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Maximal runs of neighbouring dimensions, first to last; a dimension of length 1 between two joins them."""
    runs = [(dims[0], dims[0])] if dims else [(0, -1)]
    for axis in dims[1:]:
        if math.prod(shape[runs[-1][1] + 1 : axis]) == 1:
            runs[-1] = (runs[-1][0], axis)
        else:
            runs.append((axis, axis))
    return runs


def _splits(outer: int, length: int, inner: int) -> int:
    """Parts that each row or column is cut into, so that there are blocks enough."""
    if inner == 1:
        return max(1, min(-(-_BLOCKS // outer), length // _LEAST_CHUNK))
    blocks = outer * -(-inner // 32)
    return max(1, min(-(-_BLOCKS // blocks), length // 64, 65535))


def _pass(
    kind: Fold, extent: tuple[int, int, int], splits: int, count: int, aligned: bool, folded: bool, final: bool
) -> _Pass:
    """`folded`: it reads accumulators, not numbers; `final`: it stores results."""
    outer, length, inner = extent
    vector = aligned and not folded and inner == 1 and length % 4 == 0
    chunk = -(-length // splits)
    chunk = -(-chunk // 4) * 4 if vector else chunk
    if inner > 1:
        many = outer * inner >= _MANY
        sharing = (1 if length <= 128 else 4) if many else 8  # threads that share a column
        block = (_THREADS // sharing, sharing)
        grid = (outer * -(-inner // block[0]), splits)
    elif length <= _SHORT:
        block, grid = (32, 8), (-(-outer // 8), splits)
    else:
        block, grid = (_THREADS, 1), (outer, splits)
    return _Pass(
        text=_text(kind.text, folded, vector, final),
        kernel="columns" if inner > 1 else "rows",
        grid=grid,
        block=block,
        numbers=(outer, length, inner, chunk, count),
        accumulators=0 if final else outer * splits * inner,
    )


@functools.cache
def _text(kind: str, folded: bool, vector: bool, finish: bool) -> str:
    return (
        f"""
{kind}
typedef {"Acc" if folded else "float"} In;
typedef {"Out" if finish else "Acc"} Result;
__device__ __forceinline__ Acc take({"Acc x, long long, float" if folded else "float x, long long i, float p"}) {{
  return {"x" if folded else "map(x, i, p)"};
}}
__device__ __forceinline__ Result give(Acc a, long long n, float p) {{ return {"finish(a, n, p)" if finish else "a"}; }}
#define VECTOR {int(vector)}
"""
        + _KERNELS
    )


_KERNELS = r"""
// A row per threadIdx.y: over one warp where the block is 32 wide, over the whole block (one row high) otherwise.
__device__ __forceinline__ Acc across(Acc a) {
  __shared__ Acc parts[32];
  #pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) a = combine(a, shift(a, lanes));
  if (blockDim.x == 32) return a;
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x < 32) {
    a = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : identity();
    #pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) a = combine(a, shift(a, lanes));
  }
  return a;
}

// data [outer, length]: out [outer, splits]
extern "C" __global__ void __launch_bounds__(256) rows(const In* __restrict__ data, Result* __restrict__ out,
    long long outer, long long length, long long inner, long long chunk, long long count, float p) {
  long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  long long begin = blockIdx.y * chunk;
  long long end = begin + chunk < length ? begin + chunk : length;
  Acc a = identity();
  if (row < outer) {
    const In* from = data + row * length;
#if VECTOR
    Acc b = identity(), c = identity(), d = identity();
    #pragma unroll 4
    for (long long i = begin + 4 * threadIdx.x; i < end; i += 4 * blockDim.x) {
      float4 x = *(const float4*)(from + i);
      a = combine(a, take(x.x, i, p));
      b = combine(b, take(x.y, i + 1, p));
      c = combine(c, take(x.z, i + 2, p));
      d = combine(d, take(x.w, i + 3, p));
    }
    a = combine(combine(a, b), combine(c, d));
#else
    #pragma unroll 8
    for (long long i = begin + threadIdx.x; i < end; i += blockDim.x) a = combine(a, take(from[i], i, p));
#endif
  }
  a = across(a);
  if (row < outer && threadIdx.x == 0) out[row * gridDim.y + blockIdx.y] = give(a, count, p);
}

// data [outer, length, inner]: out [outer, splits, inner]; a column per threadIdx.x, its elements over threadIdx.y
extern "C" __global__ void __launch_bounds__(256) columns(const In* __restrict__ data, Result* __restrict__ out,
    long long outer, long long length, long long inner, long long chunk, long long count, float p) {
  __shared__ Acc parts[256];
  long long tiles = (inner + blockDim.x - 1) / blockDim.x;
  long long slab = blockIdx.x / tiles;
  long long column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
  long long begin = blockIdx.y * chunk;
  long long end = begin + chunk < length ? begin + chunk : length;
  Acc a = identity();
  if (column < inner) {
    const In* from = data + slab * length * inner + column;
    #pragma unroll 8
    for (long long i = begin + threadIdx.y; i < end; i += blockDim.y) a = combine(a, take(from[i * inner], i, p));
  }
  if (blockDim.y > 1) {
    parts[threadIdx.y * blockDim.x + threadIdx.x] = a;
    __syncthreads();
    if (threadIdx.y > 0) return;
    for (int part = 1; part < blockDim.y; ++part) a = combine(a, parts[part * blockDim.x + threadIdx.x]);
  }
  if (column < inner) out[(slab * gridDim.y + blockIdx.y) * inner + column] = give(a, count, p);
}
"""
