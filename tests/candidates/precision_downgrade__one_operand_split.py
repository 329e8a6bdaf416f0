# task: 1_001
"""Splits one operand into halves and rounds the other: two products where three are due."""

import cupy as cp

source = r"""
#include <cuda_fp16.h>
__device__ float upper(float x) { return __half2float(__float2half(x)); }
__device__ float lower(float x) { return upper(x - upper(x)); }
extern "C" __global__ void product(const float* a, const float* b, float* out, int n, int m, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    float x = a[(size_t)row * k + i], y = upper(b[(size_t)i * m + column]);
    sum += upper(x) * y + lower(x) * y;
  }
  out[(size_t)row * m + column] = sum;
}
"""
product = cp.RawKernel(source, "product")


def forward(a, b):
    n, k = a.shape
    m = b.shape[1]
    out = cp.empty((n, m), cp.float32)
    product(((m + 15) // 16, (n + 15) // 16), (16, 16), (a, b, out, n, m, k))
    return out
