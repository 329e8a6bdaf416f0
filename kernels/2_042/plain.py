"""One block per plane for the mean, then one thread per image for logsumexp.

Techniques: block per row
"""
import cupy as cp

source = r'''
extern "C" __global__ void mean(float* x, float* w, float* b, float* a, float* y, int C, int H, int W) {
  int o = blockIdx.x, O = gridDim.x, n = (H + 2) * (W + 2);
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 256)
    for (int k = 0; k < 9; ++k) {
      int r = i / (W + 2) - k / 3, s = i % (W + 2) - k % 3;
      if ((r | s) < 0 || r >= H || s >= W) continue;
      for (int c = 0; c < C; ++c) v += x[((blockIdx.y * C + c) * H + r) * W + s] * w[(c * O + o) * 9 + k];
    }
  v = v / n + (threadIdx.x ? 0 : b[o] + a[o]);
  atomicAdd(y + blockIdx.y * O + o, v);
}
extern "C" __global__ void fold(float* y, float* out, int m) {
  y += threadIdx.x * m;
  float a = y[0], s = 0;
  for (int i = 1; i < m; ++i) a = fmaxf(a, y[i]);
  for (int i = 0; i < m; ++i) s += expf(y[i] - a);
  out[threadIdx.x] = 10 * (a + logf(s));
}
'''
mean = cp.RawKernel(source, "mean")
fold = cp.RawKernel(source, "fold")


def forward(x, a, w, b):
    n, c, h, k = x.shape
    m = b.size
    y = cp.zeros((n, m), cp.float32)
    mean((m, n), (256,), (x, w, b, a, y, c, h, k))
    out = cp.empty((n, 1), cp.float32)
    fold((1,), (n,), (y, out, m))
    return out
