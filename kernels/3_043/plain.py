"""One thread per output of a product; between them one per query and head with a running softmax.

Techniques: one thread per output, online softmax
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm(float* x, float* w, float* b, float* y, int n, int m, int k) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r >= n || c >= m) return;
  float v = b[c];
  for (int i = 0; i < k; ++i) v += x[r * k + i] * w[c * k + i];
  y[r * m + c] = v;
}

extern "C" __global__ void attention(float* p, float* y, int T, int W) {
  int i = blockIdx.x * 64 + threadIdx.x, d = W / 8;
  if (i >= T) return;
  p += blockIdx.z * T * 3 * W + blockIdx.y * d;
  y += (blockIdx.z * T + i) * W + blockIdx.y * d;
  float top = -3e38f, sum = 0;
  for (int j = 0; j <= i; ++j) {
    float s = 0, old = top, *k = p + j * 3 * W + W;
    for (int e = 0; e < d; ++e) s += p[i * 3 * W + e] * k[e];
    s *= rsqrtf(d);
    top = fmaxf(top, s);
    sum = sum * expf(old - top) + expf(s - top);
    for (int e = 0; e < d; ++e) y[e] = (j ? y[e] * expf(old - top) : 0) + expf(s - top) * k[W + e];
  }
  for (int e = 0; e < d; ++e) y[e] /= sum;
}
'''
gemm = cp.RawKernel(source, "gemm")
attention = cp.RawKernel(source, "attention")


def linear(x, w, b):
    n, t, k = x.shape
    y = cp.empty((n, t, b.size), cp.float32)
    gemm((b.size // 16 + 1, n * t // 16 + 1), (16, 16), (x, w, b, y, n * t, b.size, k))
    return y


def forward(x, w, b, u, c):
    n, t, k = x.shape
    y = cp.empty(x.shape, cp.float32)
    attention((t // 64 + 1, 8, n), (64,), (linear(x, w, b), y, t, k))
    return linear(y, u, c)
