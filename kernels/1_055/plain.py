"""One thread per output pixel: the sum over input channels and 3 x 3 taps.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv2d(const float* x, const float* w, float* out, int inputs, int height, int width) {
  int across = width - 2;
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= (height - 2) * across) return;
  const float* image = x + ((size_t)blockIdx.z * inputs * height + pixel / across) * width + pixel % across;
  const float* weight = w + blockIdx.y * inputs * 9;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < 9; ++k) sum += weight[c * 9 + k] * image[(c * height + k / 3) * width + k % 3];
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * (height - 2) * across + pixel] = sum;
}
'''
conv2d = cp.RawKernel(source, "conv2d")


def forward(x, weight):
    batch, inputs, height, width = x.shape
    outputs = weight.shape[0]
    out = cp.empty((batch, outputs, height - 2, width - 2), cp.float32)
    grid = (((height - 2) * (width - 2) + 255) // 256, outputs, batch)
    conv2d(grid, (256,), (x, weight, out, inputs, height, width))
    return out
