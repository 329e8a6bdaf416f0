"""One thread per row and column: each channel's least sum over depth, then softmax over channels.

Techniques: one thread per row, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void min_softmax(float* x, float* w, float* b, float* y, int O, int C, int D, int H, int W) {
  int wide = W - 2, n = (H - 2) * wide, i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  x += blockIdx.y * C * D * H * W + i / wide * W + i % wide;
  y += blockIdx.y * O * n + i;
  float top = -3e38f, sum = 0;
  for (int o = 0; o < O; ++o) {
    float low = 3e38f;
    for (int d = 0; d < D - 2; ++d) {
      float v = b[o];
      for (int c = 0; c < C; ++c)
        for (int k = 0; k < 27; ++k)
          v += x[((c * D + d + k / 9) * H + k / 3 % 3) * W + k % 3] * w[(o * C + c) * 27 + k];
      low = fminf(low, v);
    }
    y[o * n] = low;
    top = fmaxf(top, low);
  }
  for (int o = 0; o < O; ++o) sum += expf(y[o * n] - top);
  for (int o = 0; o < O; ++o) y[o * n] = expf(y[o * n] - top) / sum;
}
'''
min_softmax = cp.RawKernel(source, "min_softmax")


def forward(x, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, h - 2, k - 2), cp.float32)
    min_softmax(((h - 2) * (k - 2) // 32 + 1, n), (32,), (x, w, b, y, m, c, d, h, k))
    return y
