"""One block per plane: threads share its pooled elements and add up their shares of the mean.

Techniques: fusion, block per row, shared-memory atomics
"""
import cupy as cp

source = r'''
extern "C" __global__ void f(float* x, float* w, float* b, float* y, int C, int D, int H, int W) {
  __shared__ float sum;
  sum = 0;
  __syncthreads();
  int o = blockIdx.x, O = gridDim.x, h = H - 1, u = W - 1, n = (D - 1) * h * u;
  x += blockIdx.y * C * D * H * W;
  for (int i = threadIdx.x; i < n; i += 256) {
    float top = -3e38f;
    for (int j = 0; j < 8; ++j) {
      float v = b[o];
      for (int k = 0; k < 27; ++k) {
        int d = i / u / h * 2 + j / 4 + 1 - k / 9, r = i / u % h * 2 + j / 2 % 2 + 1 - k / 3 % 3;
        int s = i % u * 2 + j % 2 + 1 - k % 3;
        if ((d | r | s) < 0 || (d | r | s) % 2) continue;
        for (int c = 0; c < C; ++c) v += x[((c * D + d / 2) * H + r / 2) * W + s / 2] * w[(c * O + o) * 27 + k];
      }
      top = fmaxf(top, v / 2);
    }
    atomicAdd(&sum, top / n);
  }
  __syncthreads();
  y[blockIdx.y * O + o] = fminf(fmaxf(sum, 0), 1);
}
'''
f = cp.RawKernel(source, "f")


def forward(x, w, b):
    n, c, d, h, k = x.shape
    y = cp.empty((n, b.size, 1, 1, 1), cp.float32)
    f((b.size, n), (256,), (x, w, b, y, c, d, h, k))
    return y
