"""A block convolves and normalises a group.

Techniques: block per row
"""
import cupy as cp

s = r'''
#define EACH for (int i = threadIdx.x; i < n; i += 512)
extern "C" __global__ void f(float* x, float* w, float* g, float* b, float* y, int C, int O, int D, int W) {
  __shared__ float t[2];
  t[0] = t[1] = 0;
  __syncthreads();
  int v = W + 2, p = (D + 2) * v * v, n = O / 8 * p, o = blockIdx.x * O / 8;
  y += (blockIdx.y * O + o) * p;
  x += blockIdx.y * C * D * W * W;
  float m = 0, q = 0;
  EACH {
    float s = 0;
    for (int k = 0; k < 27; ++k) {
      int r = i % p / v / v - k / 9, c = i / v % v - k / 3 % 3, e = i % v - k % 3;
      if ((r | c | e) >= 0 && r < D && c < W && e < W)
        for (int j = 0; j < C; ++j)
          s += w[(j * O + o + i / p) * 27 + k] * x[((j * D + r) * W + c) * W + e];
    }
    m += (y[i] = fmaxf(s, 0)) / n;
  }
  atomicAdd(t, m);
  __syncthreads();
  EACH q += (y[i] - t[0]) * (y[i] - t[0]);
  atomicAdd(t + 1, q / n);
  __syncthreads();
  EACH y[i] = (y[i] - t[0]) * rsqrtf(t[1] + 1e-5f) * g[o + i / p] + b[o + i / p];
}
'''
f = cp.RawKernel(s, "f")


def forward(x, w, g, b):
    n, c, d, k, _ = x.shape
    m = w.shape[1]
    y = cp.empty((n, m, d + 2, k + 2, k + 2), cp.float32)
    f((8, n), (512,), (x, w, g, b, y, c, m, d, k))
    return y
