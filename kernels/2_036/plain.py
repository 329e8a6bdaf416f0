"""One block per column of an image: a thread finds the least channel of a row, a tree adds them up.

Techniques: fusion, shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void f(float* x, float* w, float* b, float* a, float* y, int O, int A, int C, int H, int W) {
  __shared__ float p[256];
  int t = threadIdx.x, j = blockIdx.x;
  x += blockIdx.y * C * H * W;
  p[t] = 0;
  for (int i = t; i < 2 * H; i += 256) {
    float low = 3e38f;
    for (int o = 0; o < O; ++o) {
      float v = b[o];
      for (int k = 0; k < 9; ++k) {
        int r = i + 1 - k / 3, s = j + 1 - k % 3;
        if ((r | s) < 0 || (r | s) % 2 || r >= 2 * H || s >= 2 * W) continue;
        for (int c = 0; c < C; ++c) v += x[(c * H + r / 2) * W + s / 2] * w[(c * O + o) * 9 + k];
      }
      low = fminf(low, v);
    }
    p[t] += low;
  }
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) p[t] += p[t + s];
    __syncthreads();
  }
  float v = p[0] * (1 + erff(p[0] * 0.70710678f)) / 2;
  if (t < A) y[(blockIdx.y * A + t) * 2 * W + j] = v + a[t];
}
'''
f = cp.RawKernel(source, "f")


def forward(x, a, w, b):
    n, c, h, k = x.shape
    y = cp.empty((n, a.size, 1, 2 * k), cp.float32)
    f((2 * k, n), (256,), (x, w, b, a, y, b.size, a.size, c, h, k))
    return y
