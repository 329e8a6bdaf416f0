"""One thread per output looks through its window.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
#include <math_constants.h>

extern "C" __global__ void max_pool(const float* x, float* out, int n, int m) {
  int o = blockIdx.x * blockDim.x + threadIdx.x;
  if (o < m) {
    const float* row = x + (size_t)blockIdx.y * n;
    float a = -CUDART_INF_F;
    for (int k = 0; k < 8; ++k) {
      int i = o - 4 + 3 * k;
      if (i >= 0 && i < n && (row[i] > a || row[i] != row[i])) a = row[i];
    }
    out[(size_t)blockIdx.y * m + o] = a;
  }
}
'''
max_pool = cp.RawKernel(source, "max_pool")


def forward(x):
    n = x.shape[2]
    m = n + 8 - 21
    out = cp.empty((x.shape[0], x.shape[1], m), cp.float32)
    max_pool(((m + 255) // 256, x.shape[0] * x.shape[1]), (256,), (x, out, n, m))
    return out
