"""One block per output: a thread per channel finds the largest of 6 x 6 x 6 sums of taps, adds it.

Techniques: fusion, global atomics
"""
import cupy as cp

source = r'''
extern "C" __global__ void pool(float* x, float* w, float* b, float* y, int C, int D, int H, int W) {
  int h = (2 * H - 1) / 6, u = (2 * W - 1) / 6, i = blockIdx.x, o = threadIdx.x, O = blockDim.x;
  x += blockIdx.y * C * D * H * W;
  float top = -3e38f;
  for (int j = 0; j < 216; ++j) {
    float v = b[o];
    for (int k = 0; k < 125; ++k) {
      int d = i / u / h * 6 + j / 36 + 2 - k / 25, r = i / u % h * 6 + j / 6 % 6 + 2 - k / 5 % 5;
      int s = i % u * 6 + j % 6 + 2 - k % 5;
      if ((d | r | s) < 0 || (d | r | s) % 2 || d >= 2 * D || r >= 2 * H || s >= 2 * W) continue;
      for (int c = 0; c < C; ++c)
        v += x[((c * D + d / 2) * H + r / 2) * W + s / 2] * w[(c * O + o) * 125 + k];
    }
    top = fmaxf(top, v);
  }
  atomicAdd(y + blockIdx.y * gridDim.x + i, top);
}
'''
pool = cp.RawKernel(source, "pool")


def forward(x, w, b):
    n, c, d, h, k = x.shape
    y = cp.zeros((n, 1, (2 * d - 1) // 6, (2 * h - 1) // 6, (2 * k - 1) // 6), cp.float32)
    pool((y.size // n, n), (b.size,), (x, w, b, y, c, d, h, k))
    return y
