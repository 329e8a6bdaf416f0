"""One thread per output element: it sums the taps that reach it, subtracts the bias, tanh.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void transposed(const float* x, const float* bias, const float* w, const float* conv_bias,
                                      float* out, int C, int H, int W) {
  int high = 2 * H + 1, wide = 2 * W + 1, o = blockIdx.y, O = gridDim.y;
  int i = blockIdx.x * 256 + threadIdx.x, row = i / wide + 1, column = i % wide + 1;
  if (i >= high * wide) return;
  float sum = conv_bias[o] - bias[o];
  for (int a = row % 2; a < 4 && a <= row; a += 2)
    for (int b = column % 2; b < 4 && b <= column; b += 2) {
      int r = (row - a) / 2, s = (column - b) / 2;
      if (r >= H || s >= W) continue;
      for (int c = 0; c < C; ++c)
        sum += x[((blockIdx.z * C + c) * H + r) * W + s] * w[((c * O + o) * 4 + a) * 4 + b];
    }
  out[(blockIdx.z * O + o) * high * wide + i] = tanhf(sum);
}
'''
kernel = cp.RawKernel(source, "transposed")


def forward(x, bias, w, conv_bias):
    n, c, h, k = x.shape
    m = w.shape[1]
    out = cp.empty((n, m, 2 * h + 1, 2 * k + 1), cp.float32)
    kernel((((2 * h + 1) * (2 * k + 1) + 255) // 256, m, n), (256,), (x, bias, w, conv_bias, out, c, h, k))
    return out
