"""One thread per output element, along a row of each operand: a symmetric matrix has its columns in its rows.

Techniques: one thread per output, algebra
"""
import cupy as cp

source = r'''
extern "C" __global__ void symmetric_product(const float* a, const float* b, float* out, int n) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= n || c >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[(size_t)r * n + i] * b[(size_t)c * n + i];
  out[(size_t)r * n + c] = sum;
}
'''
symmetric_product = cp.RawKernel(source, "symmetric_product")


def forward(a, b):
    n = a.shape[0]
    blocks = (n + 15) // 16
    out = cp.empty((n, n), cp.float32)
    symmetric_product((blocks, blocks), (16, 16), (a, b, out, n))
    return out
