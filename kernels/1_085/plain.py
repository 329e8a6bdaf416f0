"""One thread per output pixel: the sum of the taps of three rows in its own channel.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void depthwise(const float* x, const float* w, float* out, int height, int width, int taps) {
  int across = width - taps + 1;
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= (height - 2) * across) return;
  size_t plane = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
  const float* image = x + (plane * height + pixel / across) * width + pixel % across;
  const float* weight = w + blockIdx.y * 3 * taps;
  float sum = 0.0f;
  for (int row = 0; row < 3; ++row) {
    for (int k = 0; k < taps; ++k) sum += *weight++ * image[row * width + k];
  }
  out[plane * (height - 2) * across + pixel] = sum;
}
'''
depthwise = cp.RawKernel(source, "depthwise")


def forward(x, weight):
    batch, channels, height, width = x.shape
    taps = weight.shape[3]
    out = cp.empty((batch, channels, height - 2, width - taps + 1), cp.float32)
    grid = (((height - 2) * (width - taps + 1) + 255) // 256, channels, batch)
    depthwise(grid, (256,), (x, weight, out, height, width, taps))
    return out
