"""One thread per output element: the taps that reach it, the other input, x times its hardswish.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void hardswish(float* x, float* w, float* b, float* a, float* y, int C, int D, int H, int W) {
  int high = 2 * H, wide = 2 * W, n = 2 * D * high * wide;
  int i = blockIdx.x * 256 + threadIdx.x, o = blockIdx.y, O = gridDim.y;
  if (i >= n) return;
  x += blockIdx.z * C * D * H * W;
  float v = b[o];
  for (int k = 0; k < 27; ++k) {
    int d = i / wide / high + 1 - k / 9, r = i / wide % high + 1 - k / 3 % 3, s = i % wide + 1 - k % 3;
    if ((d | r | s) < 0 || (d | r | s) % 2 || d >= 2 * D || r >= 2 * H || s >= 2 * W) continue;
    for (int c = 0; c < C; ++c)
      v += x[((c * D + d / 2) * H + r / 2) * W + s / 2] * w[(c * O + o) * 27 + k];
  }
  v += a[(blockIdx.z * O + o) * n + i];
  y[(blockIdx.z * O + o) * n + i] = v * v * fminf(fmaxf(v + 3, 0), 6) / 6;
}
'''
hardswish = cp.RawKernel(source, "hardswish")


def forward(x, a, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, 2 * d, 2 * h, 2 * k), cp.float32)
    hardswish((d * h * k // 32 + 1, m, n), (256,), (x, w, b, a, y, c, d, h, k))
    return y
