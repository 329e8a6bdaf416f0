"""A tile in shared memory, from which each thread takes the maxima of seven windows in registers.

Windows of 8 elements, 3 apart, share elements with windows 3, 6, ... further on. So a thread takes seven outputs 3
apart: it reads 14 elements where seven windows have 56, and pairs, then fours, then eights give the maxima in 4.4
comparisons an output in place of seven. A warp's lanes are 21 elements apart, an odd number, so shared memory has no
conflicts. Results go back through the tile, so that all traffic with global memory is coalesced; tiles begin where
output addresses are a multiple of 128 bytes.

Techniques: shared-memory tile, register strips, partial maxima shared between windows, stores through shared memory
"""
import cupy as cp

source = r'''
#include <math_constants.h>

template <bool careful> __device__ float larger(float a, float b) {
  return careful && (a != a || b != b) ? CUDART_NAN_F : fmaxf(a, b);
}

// v[j] becomes the largest of v[j] to v[j + 7].
template <bool careful> __device__ void maxima(float (&v)[14]) {
  #pragma unroll
  for (int j = 0; j < 13; ++j) v[j] = larger<careful>(v[j], v[j + 1]);
  #pragma unroll
  for (int j = 0; j < 11; ++j) v[j] = larger<careful>(v[j], v[j + 2]);
  #pragma unroll
  for (int j = 0; j < 7; ++j) v[j] = larger<careful>(v[j], v[j + 4]);
}

// Three warps, one for each remainder of an output's place by 3; a lane has a strip of seven outputs, 3 apart.
extern "C" __global__ void __launch_bounds__(96) max_strips(const float* __restrict__ x, float* __restrict__ out, int n,
                                                            int m) {
  __shared__ float memory[32 + 8 * 96];
  int t = threadIdx.x;
  const float* row = x + (size_t)blockIdx.y * n;
  size_t to = (size_t)blockIdx.y * m;
  int start = (int)blockIdx.x * 672 - (int)(to % 32);
  int first = start - 4;
  int skew = (int)(((size_t)blockIdx.y * n + first) & 31);
  float u[8];
  bool nan = false;
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = first - skew + t + 96 * k;
    u[k] = (unsigned)i < (unsigned)n ? row[i] : -CUDART_INF_F;
    nan |= u[k] != u[k];
  }
  #pragma unroll
  for (int k = 0; k < 8; ++k) memory[32 - skew + t + 96 * k] = u[k];
  nan = __syncthreads_or(nan);
  float* tile = memory + 32;
  float* strip = tile + 21 * (t % 32) + t / 32;
  float v[14];
  #pragma unroll
  for (int j = 0; j < 14; ++j) v[j] = strip[3 * j];
  if (nan) {
    maxima<true>(v);
  } else {
    maxima<false>(v);
  }
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < 7; ++j) strip[3 * j] = v[j];
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < 7; ++k) {
    int i = start + t + 96 * k;
    if ((unsigned)i < (unsigned)m) out[to + i] = tile[t + 96 * k];
  }
}
'''
max_strips = cp.RawKernel(source, "max_strips")


def forward(x):
    n = x.shape[2]
    m = n + 8 - 21
    rows = x.shape[0] * x.shape[1]
    out = cp.empty((x.shape[0], x.shape[1], m), cp.float32)
    max_strips(((m + 31 + 671) // 672, rows), (96,), (x, out, n, m))
    return out
