"""One thread per output element: the window's sum times a factor, tanh times another one, sigmoid.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv_scale_tanh(const float* x, const float* w, const float* b, const float* f,
                                           const float* a, float* y, int C, int D, int H, int W) {
  int high = H - 2, wide = W - 2, n = (D - 2) * high * wide;
  int i = blockIdx.x * 256 + threadIdx.x, o = blockIdx.y;
  if (i >= n) return;
  x += blockIdx.z * C * D * H * W + (i / wide / high * H + i / wide % high) * W + i % wide;
  float v = b[o];
  for (int c = 0; c < C; ++c)
    for (int k = 0; k < 27; ++k)
      v += x[((c * D + k / 9) * H + k / 3 % 3) * W + k % 3] * w[(o * C + c) * 27 + k];
  v = tanhf(v * f[o]) * a[o];
  y[(blockIdx.z * gridDim.y + o) * n + i] = 1.0f / (1.0f + expf(-v));
}
'''
conv_scale_tanh = cp.RawKernel(source, "conv_scale_tanh")


def forward(x, f, a, w, b):
    n, c, d, h, k = x.shape
    m = b.size
    y = cp.empty((n, m, d - 2, h - 2, k - 2), cp.float32)
    conv_scale_tanh(((d - 2) * (h - 2) * (k - 2) // 256 + 1, m, n), (256,), (x, w, b, f, a, y, c, d, h, k))
    return y
