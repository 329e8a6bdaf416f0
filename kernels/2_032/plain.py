"""One thread per pixel: the smallest of the channels' sums, each doubled.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv_scale_min(const float* x, const float* w, const float* bias, float* out, int O, int C,
                                          int H, int W) {
  int high = H - 2, wide = W - 2, i = blockIdx.x * 256 + threadIdx.x;
  if (i >= high * wide) return;
  x += blockIdx.y * C * H * W + i / wide * W + i % wide;
  float low = 3e38f;
  for (int o = 0; o < O; ++o) {
    float v = bias[o];
    for (int c = 0; c < C; ++c)
      for (int k = 0; k < 9; ++k) v += x[(c * H + k / 3) * W + k % 3] * w[(o * C + c) * 9 + k];
    low = fminf(low, 2.0f * v);
  }
  out[blockIdx.y * high * wide + i] = low;
}
'''
conv_scale_min = cp.RawKernel(source, "conv_scale_min")


def forward(x, w, bias):
    n, c, h, k = x.shape
    out = cp.empty((n, 1, h - 2, k - 2), cp.float32)
    conv_scale_min((((h - 2) * (k - 2) + 255) // 256, n), (256,), (x, w, bias, out, w.shape[0], c, h, k))
    return out
