"""One thread per output of the linear layer and gelu, then one per row for the softmax.

Techniques: one thread per output, one thread per row
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm_gelu(const float* x, const float* w, const float* b, float* y, int n, int m, int k) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r >= n || c >= m) return;
  float v = b[c];
  for (int i = 0; i < k; ++i) v += x[(size_t)r * k + i] * w[(size_t)c * k + i];
  y[(size_t)r * m + c] = 0.5f * v * (1 + erff(v * 0.70710678f));
}

extern "C" __global__ void softmax(float* y, int n, int m) {
  int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= n) return;
  y += (size_t)r * m;
  float top = y[0], sum = 0;
  for (int i = 1; i < m; ++i) top = fmaxf(top, y[i]);
  for (int i = 0; i < m; ++i) sum += expf(y[i] - top);
  for (int i = 0; i < m; ++i) y[i] = expf(y[i] - top) / sum;
}
'''
gemm_gelu = cp.RawKernel(source, "gemm_gelu")
softmax = cp.RawKernel(source, "softmax")


def forward(x, w, b):
    n, k = x.shape
    m = b.size
    y = cp.empty((n, m), cp.float32)
    gemm_gelu(((m + 15) // 16, (n + 15) // 16), (16, 16), (x, w, b, y, n, m, k))
    softmax(((n + 31) // 32,), (32,), (y, n, m))
    return y
