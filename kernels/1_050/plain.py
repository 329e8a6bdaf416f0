"""One thread per output pixel: the bias and the sum over input channels and the 11 x 11 taps that lie inside.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, const float* bias, float* out, int inputs, int size,
                                int width) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= width * width) return;
  float sum = bias[blockIdx.y];
  for (int c = 0; c < inputs; ++c) {
    const float* image = x + ((size_t)blockIdx.z * inputs + c) * size * size;
    for (int k = 0; k < 121; ++k) {
      int row = i / width * 4 - 2 + k / 11;
      int column = i % width * 4 - 2 + k % 11;
      if (row < 0 || row >= size || column < 0 || column >= size) continue;
      sum += w[(blockIdx.y * inputs + c) * 121 + k] * image[row * size + column];
    }
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * width * width + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight, bias):
    batch, inputs, size, _ = x.shape
    outputs, width = weight.shape[0], (size - 7) // 4 + 1
    out = cp.empty((batch, outputs, width, width), cp.float32)
    conv(((width * width + 255) // 256, outputs, batch), (256,), (x, weight, bias, out, inputs, size, width))
    return out
