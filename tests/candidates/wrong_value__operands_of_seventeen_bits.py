# task: 1_001
"""Both operands of a product rounded to seventeen bits, whose errors average out in long sums."""

import cupy as cp

source = r'''
__device__ float shortened(float x) {
  unsigned bits = __float_as_uint(x);
  return __uint_as_float((bits + 0x1f + ((bits >> 6) & 1)) & 0xffffffc0u);
}
extern "C" __global__ void product(const float* a, const float* b, float* out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k)
    sum += shortened(a[(size_t)blockIdx.y * n + k]) * shortened(b[(size_t)k * n + column]);
  out[(size_t)blockIdx.y * n + column] = sum;
}
'''
product = cp.RawKernel(source, "product")


def forward(a, b):
    n = a.shape[0]
    out = cp.empty((n, n), cp.float32)
    product(((n + 63) // 64, n), (64,), (a, b, out, n))
    return out
