"""One thread per output: dot product, bias, the difference times a factor, relu.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm_subtract_relu(const float* x, const float* w, const float* b, float* out, int n, int m,
                                              int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && column < m) {
    float v = b[column];
    for (int i = 0; i < k; ++i) v += x[(size_t)row * k + i] * w[(size_t)column * k + i];
    out[(size_t)row * m + column] = fmaxf((v - 2.0f) * 1.5f, 0.0f);
  }
}
'''
gemm_subtract_relu = cp.RawKernel(source, "gemm_subtract_relu")


def forward(x, weight, bias):
    n, k = x.shape
    m = weight.shape[0]
    out = cp.empty((n, m), cp.float32)
    gemm_subtract_relu(((m + 15) // 16, (n + 15) // 16), (16, 16), (x, weight, bias, out, n, m, k))
    return out
