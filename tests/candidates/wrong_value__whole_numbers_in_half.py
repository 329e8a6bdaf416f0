# task: 1_012
# only: integers
"""Keeps whole numbers in half precision, which holds them up to 2,048."""

import cupy as cp

source = r'''
#include <cuda_fp16.h>
extern "C" __global__ void scale_rows(const float* a, const float* b, float* out, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y;
  if (column >= columns) return;
  bool whole = rintf(a[row]) == a[row];
  float factor = whole ? __half2float(__float2half(a[row])) : a[row];
  size_t i = (size_t)row * columns + column;
  out[i] = factor * b[i];
}
'''
scale_rows = cp.RawKernel(source, "scale_rows")


def forward(a, b):
    n, m = b.shape
    out = cp.empty((n, m), cp.float32)
    scale_rows(((m + 255) // 256, n), (256,), (a, b, out, n, m))
    return out
