"""One thread per pooled element: the taps that reach its eight, their mean scaled, bias, factor.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void pool(float* x, float* w, float* b, float* f, float* a, float* g, float* y, int C, int D,
                                int H, int W) {
  int i = blockIdx.x * 256 + threadIdx.x, o = blockIdx.y, O = gridDim.y, h = H - 1, u = W - 1, n = (D - 1) * h * u;
  if (i >= n) return;
  x += blockIdx.z * C * D * H * W;
  float sum = 0;
  for (int j = 0; j < 8; ++j) {
    float v = b[o];
    for (int k = 0; k < 27; ++k) {
      int d = i / u / h * 2 + j / 4 + 1 - k / 9,
          r = i / u % h * 2 + j / 2 % 2 + 1 - k / 3 % 3, s = i % u * 2 + j % 2 + 1 - k % 3;
      if ((d | r | s) < 0 || (d | r | s) % 2) continue;
      for (int c = 0; c < C; ++c)
        v += x[((c * D + d / 2) * H + r / 2) * W + s / 2] * w[(c * O + o) * 27 + k];
    }
    sum += v;
  }
  y[(blockIdx.z * O + o) * n + i] = (sum / 8 * *f + a[o]) * *g;
}
'''
pool = cp.RawKernel(source, "pool")


def forward(x, f, a, g, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, d - 1, h - 1, k - 1), cp.float32)
    pool((d * h * k // 256 + 1, m, n), (256,), (x, w, b, f, a, g, y, c, d, h, k))
    return y
