"""One thread per output element: it sums the taps that reach it; both clamps are one, from 0 to a half.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void transposed_clamp(const float* x, const float* w, const float* bias, const float* added,
                                            float* out, int C, int H, int W) {
  int high = 2 * H, wide = 2 * W, i = blockIdx.x * 256 + threadIdx.x, o = blockIdx.y, O = gridDim.y;
  if (i >= high * wide) return;
  float v = bias[o];
  for (int k = 0; k < 9; ++k) {
    int r = i / wide + 1 - k / 3, s = i % wide + 1 - k % 3;
    if ((r | s) < 0 || (r | s) % 2 || r >= 2 * H || s >= 2 * W) continue;
    for (int c = 0; c < C; ++c)
      v += x[((blockIdx.z * C + c) * H + r / 2) * W + s / 2] * w[(c * O + o) * 9 + k];
  }
  out[(blockIdx.z * O + o) * high * wide + i] = fminf(fmaxf(v + added[o], 0.0f), 0.5f);
}
'''
transposed_clamp = cp.RawKernel(source, "transposed_clamp")


def forward(x, added, w, bias):
    n, c, h, k = x.shape
    m = w.shape[1]
    high, wide = 2 * h, 2 * k
    out = cp.empty((n, m, high, wide), cp.float32)
    transposed_clamp(((high * wide + 255) // 256, m, n), (256,), (x, w, bias, added, out, c, h, k))
    return out
