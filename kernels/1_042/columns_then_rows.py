"""A thread takes the vertical maxima of a column strip in registers, shuffles then join neighbouring columns.

A window of 4 x 4 shares twelve elements with the next. Each lane reads 19 elements of its column once, all loads at
the same time, and joins rows in pairs and pairs to fours: 16 vertical maxima. Two shuffles each join columns in pairs
and pairs to fours, so that a warp of 32 columns gives 29. That is little more than one load and four comparisons an
output in place of sixteen. An index outside the plane may be moved to its edge, since the edge is in the same window.
Whether a strip has a NaN is noted on the side; only then is it done again with the slower maximum that keeps NaN.

Techniques: separable window, rows in registers, warp shuffles in place of loads, shared partial maxima
"""
import cupy as cp

source = r'''
#include <math_constants.h>

template <bool careful> __device__ float larger(float a, float b) {
  return careful && (a != a || b != b) ? CUDART_NAN_F : fmaxf(a, b);
}

// v[k] becomes the largest of rows k to k + 3 in this lane's column and the three to its right.
template <bool careful> __device__ void windows(float (&v)[19]) {
  #pragma unroll
  for (int k = 0; k < 18; ++k) v[k] = larger<careful>(v[k], v[k + 1]);
  #pragma unroll
  for (int k = 0; k < 16; ++k) {
    v[k] = larger<careful>(v[k], v[k + 2]);
    v[k] = larger<careful>(v[k], __shfl_down_sync(0xffffffffu, v[k], 1));
    v[k] = larger<careful>(v[k], __shfl_down_sync(0xffffffffu, v[k], 2));
  }
}

extern "C" __global__ void __launch_bounds__(192) max_pool(const float* __restrict__ x, float* __restrict__ out,
                                                           int height, int width) {
  int lane = threadIdx.x;
  int column = (blockIdx.x * 6 + threadIdx.y) * 29 + lane;
  int first = blockIdx.y * 16;
  x += (size_t)blockIdx.z * height * width + min(max(column - 1, 0), width - 1);
  out += ((size_t)blockIdx.z * (height - 1) + first) * (width - 1) + column;
  float v[19];
  bool nan = false;
  #pragma unroll
  for (int k = 0; k < 19; ++k) v[k] = x[min(max(first + k - 1, 0), height - 1) * width];
  #pragma unroll
  for (int k = 0; k < 19; ++k) nan |= v[k] != v[k];
  if (__any_sync(0xffffffffu, nan)) {
    windows<true>(v);
  } else {
    windows<false>(v);
  }
  if (lane >= 29 || column >= width - 1) return;
  #pragma unroll
  for (int k = 0; k < 16; ++k) {
    if (first + k < height - 1) out[k * (width - 1)] = v[k];
  }
}
'''
max_pool = cp.RawKernel(source, "max_pool")


def forward(x):
    batch, channels, height, width = x.shape
    out = cp.empty((batch, channels, height - 1, width - 1), cp.float32)
    max_pool(((width - 1 + 173) // 174, (height + 14) // 16, batch * channels), (32, 6), (x, out, height, width))
    return out
