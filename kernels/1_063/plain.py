"""One thread per output pixel: the sum over input channels and 3 x 3 taps.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv2d(const float* x, const float* w, float* out, int inputs, int outputs, int size) {
  int width = size - 2;
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= width * width) return;
  int channel = blockIdx.y;
  const float* image = x + (size_t)blockIdx.z * inputs * size * size + pixel / width * size + pixel % width;
  const float* weight = w + channel * inputs * 9;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < 9; ++k) sum += weight[c * 9 + k] * image[c * size * size + k / 3 * size + k % 3];
  }
  out[((size_t)blockIdx.z * outputs + channel) * width * width + pixel] = sum;
}
'''
conv2d = cp.RawKernel(source, "conv2d")


def forward(x, weight):
    batch, inputs, size, _ = x.shape
    outputs = weight.shape[0]
    width = size - 2
    out = cp.empty((batch, outputs, width, width), cp.float32)
    grid = ((width * width + 255) // 256, outputs, batch)
    conv2d(grid, (256,), (x, weight, out, inputs, outputs, size))
    return out
