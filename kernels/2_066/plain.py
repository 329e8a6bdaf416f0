"""One thread per output of the layer and dropout, then one per row.

Techniques: fusion, one thread per output, one thread per row
"""
import cupy as cp

source = r'''
extern "C" __global__ void layer(const float* x, const bool* kept, const float* w, const float* b, float* y, int n,
                                 int m, int k) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r >= n || c >= m) return;
  float v = b[c];
  for (int i = 0; i < k; ++i) v += x[(size_t)r * k + i] * w[(size_t)c * k + i];
  y[(size_t)r * m + c] = kept[(size_t)r * m + c] ? v / 0.8f : 0.0f;
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
layer = cp.RawKernel(source, "layer")
softmax = cp.RawKernel(source, "softmax")


def forward(x, kept, w, b):
    n, k = x.shape
    m = b.size
    y = cp.empty((n, m), cp.float32)
    layer(((m + 15) // 16, (n + 15) // 16), (16, 16), (x, kept, w, b, y, n, m, k))
    softmax(((n + 31) // 32,), (32,), (y, n, m))
    return y
