"""Cumulative sums and products on CuPy arrays: a block per contiguous row, or a thread per strided column."""

import functools
import math

import cupy as cp

from evaluator.nn.cupy_nn.fused import contiguous
from evaluator.nn.cupy_nn.launch import launch
from evaluator.nn.cupy_nn.reductions import dims_of

_THREADS = 256


def cumsum(x: cp.ndarray, dim: int) -> cp.ndarray:
    return _scan(x, dim, "a + b", "0.0f") if x.dtype == cp.float32 else cp.cumsum(x, axis=dim)


def cumprod(x: cp.ndarray, dim: int) -> cp.ndarray:
    return _scan(x, dim, "a * b", "1.0f") if x.dtype == cp.float32 else cp.cumprod(x, axis=dim)


def _scan(x: cp.ndarray, dim: int, combined: str, identity: str) -> cp.ndarray:
    (axis,) = dims_of(x, dim)
    data = contiguous(x)
    out = type(x)(x.shape, cp.float32)
    if x.size == 0:
        return out
    outer, length, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if inner > 1:
        blocks = -(-outer * inner // _THREADS)
        launch(_text(combined, identity, False), "columns", (blocks,), (_THREADS,), (data, out, outer, length, inner))
    else:
        text = _text(combined, identity, length % 4 == 0 and data.data.ptr % 16 == 0)
        launch(text, "rows", (outer,), (_THREADS,), (data, out, length))
    return out


@functools.cache
def _text(combined: str, identity: str, vector: bool) -> str:
    return (
        f"""
#define IDENTITY {identity}
#define VECTOR {int(vector)}
__device__ __forceinline__ float combine(float a, float b) {{ return {combined}; }}
"""
        + _KERNELS
    )


_KERNELS = r"""
// Four elements that follow one another; those past the end of the row are the identity.
__device__ __forceinline__ float4 load(const float* row, long long at, long long length) {
#if VECTOR
  return at < length ? *(const float4*)(row + at) : make_float4(IDENTITY, IDENTITY, IDENTITY, IDENTITY);
#else
  return make_float4(at < length ? row[at] : IDENTITY, at + 1 < length ? row[at + 1] : IDENTITY,
                     at + 2 < length ? row[at + 2] : IDENTITY, at + 3 < length ? row[at + 3] : IDENTITY);
#endif
}

__device__ __forceinline__ void store(float* row, long long at, long long length, float4 x) {
#if VECTOR
  if (at < length) *(float4*)(row + at) = x;
#else
  if (at < length) row[at] = x.x;
  if (at + 1 < length) row[at + 1] = x.y;
  if (at + 2 < length) row[at + 2] = x.z;
  if (at + 3 < length) row[at + 3] = x.w;
#endif
}

// The row goes by in tiles of 1024: four elements a thread, warp scans of their totals, a scan over the eight warps.
extern "C" __global__ void __launch_bounds__(256) rows(const float* __restrict__ data, float* __restrict__ out,
    long long length) {
  __shared__ float totals[2][8];
  const float* row = data + blockIdx.x * length;
  float* target = out + blockIdx.x * length;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, buffer = 0;
  float carry = IDENTITY;
  float4 next = load(row, 4 * threadIdx.x, length);
  for (long long tile = 0; tile < length; tile += 1024) {
    long long at = tile + 4 * threadIdx.x;
    float4 x = next;
    next = load(row, at + 1024, length);
    x.y = combine(x.x, x.y);
    x.z = combine(x.y, x.z);
    x.w = combine(x.z, x.w);
    float through = x.w;
    #pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      float before = __shfl_up_sync(0xffffffffu, through, lanes);
      if (lane >= lanes) through = combine(before, through);
    }
    if (lane == 31) totals[buffer][warp] = through;
    __syncthreads();
    float before = __shfl_up_sync(0xffffffffu, through, 1);
    if (lane == 0) before = IDENTITY;
    float warps = carry;
    for (int other = 0; other < 8; ++other) {
      if (other == warp) before = combine(warps, before);
      warps = combine(warps, totals[buffer][other]);
    }
    carry = warps;
    buffer ^= 1;
    store(target, at, length, make_float4(combine(before, x.x), combine(before, x.y), combine(before, x.z),
                                          combine(before, x.w)));
  }
}

extern "C" __global__ void __launch_bounds__(256) columns(const float* __restrict__ data, float* __restrict__ out,
    long long outer, long long length, long long inner) {
  long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= outer * inner) return;
  long long at = column / inner * length * inner + column % inner;
  float so_far = IDENTITY;
  #pragma unroll 8
  for (long long i = 0; i < length; ++i, at += inner) {
    so_far = combine(so_far, data[at]);
    out[at] = so_far;
  }
}
"""
