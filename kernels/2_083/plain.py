"""One block per group: convolve, normalise, clamp.

Techniques: block per row, shared-memory atomics
"""
import cupy as cp

s = r'''
#define EACH for (int i = threadIdx.x; i < n; i += 512)
extern "C" __global__ void f(float* x, float* w, float* a, float* g, float* b, float* y, int C, int O, int D, int W) {
  __shared__ float t[2];
  t[0] = t[1] = 0;
  __syncthreads();
  int v = W - 2, p = (D - 2) * v * v, n = O / 8 * p, o = blockIdx.x * O / 8;
  x += blockIdx.y * C * D * W * W;
  y += (blockIdx.y * O + o) * p;
  float m = 0, q = 0;
  EACH {
    float s = a[o + i / p];
    for (int k = 0; k < 27 * C; ++k)
      s += w[(o + i / p) * C * 27 + k] *
           x[((k / 27 * D + i % p / v / v + k / 9 % 3) * W + i / v % v + k / 3 % 3) * W + i % v + k % 3];
    y[i] = s;
    m += s / n;
  }
  atomicAdd(t, m);
  __syncthreads();
  EACH q += (y[i] - t[0]) * (y[i] - t[0]);
  atomicAdd(t + 1, q / n);
  __syncthreads();
  EACH {
    float s = (y[i] - t[0]) * rsqrtf(t[1] + 1e-5f) * g[o + i / p] + b[o + i / p];
    s = s > 0 ? 0 : s;
    y[i] = s < 0 ? 0 : s;
  }
}
'''
f = cp.RawKernel(s, "f")


def forward(x, w, a, g, b):
    n, c, d, k, _ = x.shape
    m = w.shape[0]
    y = cp.empty((n, m, d - 2, k - 2, k - 2), cp.float32)
    f((8, n), (512,), (x, w, a, g, b, y, c, m, d, k))
    return y
