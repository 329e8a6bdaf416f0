"""One thread per position: it sums the taps that reach each channel, then softmax and sigmoid.

Techniques: one thread per row, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void softmax(float* x, float* w, float* b, float* y, int O, int C, int D, int H, int W) {
  int n = 8 * D * H * W, i = blockIdx.x, j = threadIdx.x;
  y += blockIdx.y * O * n + i * 2 * W + j;
  float top = -3e38f, sum = 0;
  for (int o = 0; o < O; ++o) {
    float v = b[o];
    for (int k = 0; k < 27; ++k) {
      int d = i / H / 2 + 1 - k / 9, r = i % (2 * H) + 1 - k / 3 % 3, s = j + 1 - k % 3;
      if ((d | r | s) < 0 || (d | r | s) % 2 || d >= 2 * D || r >= 2 * H || s >= 2 * W) continue;
      for (int c = 0; c < C; ++c)
        v += x[(((blockIdx.y * C + c) * D + d / 2) * H + r / 2) * W + s / 2] * w[(c * O + o) * 27 + k];
    }
    y[o * n] = v;
    top = fmaxf(top, v);
  }
  for (int o = 0; o < O; ++o) sum += expf(y[o * n] - top);
  for (int o = 0; o < O; ++o) y[o * n] = 1 / (1 + expf(-expf(y[o * n] - top) / sum));
}
'''
softmax = cp.RawKernel(source, "softmax")


def forward(x, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, 2 * d, 2 * h, 2 * k), cp.float32)
    softmax((4 * d * h, n), (2 * k,), (x, w, b, y, m, c, d, h, k))
    return y
