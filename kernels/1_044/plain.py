"""One thread per output adds up its window; the padding counts as zeros.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void avg_pool(const float* x, float* out, int n, int m) {
  int o = blockIdx.x * blockDim.x + threadIdx.x;
  if (o < m) {
    const float* row = x + (size_t)blockIdx.y * n;
    float sum = 0.0f;
    for (int i = max(o - 4, 0); i < min(o + 4, n); ++i) sum += row[i];
    out[(size_t)blockIdx.y * m + o] = sum / 8;
  }
}
'''
avg_pool = cp.RawKernel(source, "avg_pool")


def forward(x):
    n = x.shape[2]
    m = n + 1
    out = cp.empty((x.shape[0], x.shape[1], m), cp.float32)
    avg_pool(((m + 255) // 256, x.shape[0] * x.shape[1]), (256,), (x, out, n, m))
    return out
