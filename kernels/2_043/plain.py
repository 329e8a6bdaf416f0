"""One thread per pooled position: each channel's largest sum enters a logsumexp.

Techniques: online softmax
"""
import cupy as cp

source = r'''
extern "C" __global__ void f(float* x, float* w, float* b, float* y, int O, int C, int D, int H, int W) {
  float max = -3e38f, sum = 0;
  x += blockIdx.z * C * D * H * W;
  for (int o = 0; o < O; ++o) {
    float top = -3e38f, old = max;
    for (int q = 0; q < 8; ++q) {
      float v = b[o];
      for (int k = 0; k < 27; ++k) {
        int d = blockIdx.x * 2 + q / 4 + k / 9 - 1, r = blockIdx.y * 2 + q / 2 % 2 + k / 3 % 3 - 1;
        int s = threadIdx.x * 2 + q % 2 + k % 3 - 1;
        if ((d | r | s) < 0 || d >= D || r >= H || s >= W) continue;
        for (int c = 0; c < C; ++c) v += x[((c * D + d) * H + r) * W + s] * w[(o * C + c) * 27 + k];
      }
      top = fmaxf(top, v);
    }
    max = fmaxf(max, top);
    sum = sum * expf(old - max) + expf(top - max);
  }
  y += ((blockIdx.z * gridDim.x + blockIdx.x) * gridDim.y + blockIdx.y) * blockDim.x;
  y[threadIdx.x] = fmaxf(max + logf(sum), 0);
}
'''
f = cp.RawKernel(source, "f")


def forward(x, w, b):
    n, c, d, h, k = x.shape
    y = cp.empty((n, 1, d // 2, h // 2, k // 2), cp.float32)
    f((d // 2, h // 2, n), (k // 2,), (x, w, b, y, b.size, c, d, h, k))
    return y
