"""One thread per row and column: each channel's mean over depth of the taps that reach it, softmax, tanh.

Techniques: one thread per row, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void softmax(float* x, float* w, float* b, float* a, float* y, int O, int C, int D, int H,
                                   int W) {
  int n = H * W, i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  y += blockIdx.y * O * n + i;
  float top = -3e38f, sum = 0;
  for (int o = 0; o < O; ++o) {
    float v = 0;
    for (int j = 0; j < D * 27; ++j) {
      int k = j % 27, d = j / 27 + 1 - k / 9, r = i / W + 1 - k / 3 % 3, s = i % W + 1 - k % 3;
      if ((d | r | s) < 0 || d >= D || r >= H || s >= W) continue;
      for (int c = 0; c < C; ++c) v += x[((blockIdx.y * C + c) * D + d) * n + r * W + s] * w[(c * O + o) * 27 + k];
    }
    top = fmaxf(top, y[o * n] = v / D + b[o] + a[o]);
  }
  for (int o = 0; o < O; ++o) sum += expf(y[o * n] - top);
  for (int o = 0; o < O; ++o) y[o * n] = 2 * tanhf(expf(y[o * n] - top) / sum);
}
'''
softmax = cp.RawKernel(source, "softmax")


def forward(x, a, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, 1, h, k), cp.float32)
    softmax((h * k // 128 + 1, n), (128,), (x, w, b, a, y, m, c, d, h, k))
    return y
