"""One thread per output pixel: the sum over input channels and those of 5 x 9 spread taps that lie inside.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, float* out, int inputs, int height, int width, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  x += (size_t)blockIdx.z * inputs * height * width;
  w += blockIdx.y * inputs * 45;
  float sum = 0.0f;
  for (int k = 0; k < 45; ++k) {
    int row = i / (width - 16) - 2 + k / 9 * 2;
    int column = i % (width - 16) - 4 + k % 9 * 3;
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    for (int c = 0; c < inputs; ++c) sum += w[c * 45 + k] * x[(c * height + row) * width + column];
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight):
    batch, inputs, height, width = x.shape
    outputs, down, across = weight.shape[0], height - 4, width - 16
    out, n = cp.empty((batch, outputs, down, across), cp.float32), down * across
    conv(((n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, height, width, n))
    return out
