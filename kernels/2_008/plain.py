"""One block per image: threads share the pooled elements of all channels, a tree adds them up.

Techniques: fusion, block per row, shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void f(float* x, float* w, float* b, float* a, float* y, int O, int C, int D, int H, int W) {
  __shared__ float p[256];
  int t = threadIdx.x, h = (H - 2) / 2, u = (W - 2) / 2, n = (D - 2) / 2 * h * u;
  x += blockIdx.x * C * D * H * W;
  p[t] = t < O ? a[t] : 0;
  for (int j = t; j < O * n; j += 256) {
    int o = j / n, i = j % n;
    float top = -3e38f;
    for (int q = 0; q < 8; ++q) {
      int d = i / u / h * 2 + q / 4, r = i / u % h * 2 + q / 2 % 2, s = i % u * 2 + q % 2;
      float v = b[o];
      for (int c = 0; c < C; ++c)
        for (int k = 0; k < 27; ++k)
          v += x[((c * D + d + k / 9) * H + r + k / 3 % 3) * W + s + k % 3] * w[(o * C + c) * 27 + k];
      top = fmaxf(top, v / 2);
    }
    p[t] += top / n;
  }
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) p[t] += p[t + s];
    __syncthreads();
  }
  y[blockIdx.x] = p[0];
}
'''
f = cp.RawKernel(source, "f")


def forward(x, a, w, b):
    n, c, d, h, k = x.shape
    y = cp.empty((n, 1, 1, 1), cp.float32)
    f((n,), (256,), (x, w, b, a, y, b.size, c, d, h, k))
    return y
