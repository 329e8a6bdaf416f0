"""One thread per pooled element: eight sums of taps, leaky relu, factor, leaky relu, the largest.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void pool(float* x, float* w, float* b, float* a, float* y, int C, int D, int H, int W) {
  int i = blockIdx.x * 256 + threadIdx.x, o = blockIdx.y, O = gridDim.y, n = D * H * W;
  if (i >= n) return;
  x += blockIdx.z * C * D * H * W;
  float top = -3e38f;
  for (int j = 0; j < 8; ++j) {
    float v = b[o];
    for (int k = 0; k < 27; ++k) {
      int d = i / W / H * 2 + j / 4 + 1 - k / 9,
          r = i / W % H * 2 + j / 2 % 2 + 1 - k / 3 % 3, s = i % W * 2 + j % 2 + 1 - k % 3;
      if ((d | r | s) < 0 || (d | r | s) % 2 || d >= 2 * D || r >= 2 * H || s >= 2 * W) continue;
      for (int c = 0; c < C; ++c)
        v += x[((c * D + d / 2) * H + r / 2) * W + s / 2] * w[(c * O + o) * 27 + k];
    }
    v = (v > 0 ? v : 0.2f * v) * a[o];
    top = fmaxf(top, v > 0 ? v : 0.2f * v);
  }
  y[(blockIdx.z * O + o) * n + i] = top;
}
'''
pool = cp.RawKernel(source, "pool")


def forward(x, a, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, d, h, k), cp.float32)
    pool((d * h * k // 256 + 1, m, n), (256,), (x, w, b, a, y, c, d, h, k))
    return y
