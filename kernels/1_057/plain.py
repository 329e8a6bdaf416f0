"""One thread per output pixel: the sum over input channels and those of the 3 x 3 taps that reach it.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void transposed(const float* x, const float* w, float* out, int inputs, int outputs, int size) {
  int width = size + 2;
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= width * width) return;
  int channel = blockIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < 9; ++k) {
    int row = pixel / width - k / 3;
    int column = pixel % width - k % 3;
    if (row < 0 || row >= size || column < 0 || column >= size) continue;
    for (int c = 0; c < inputs; ++c) {
      sum += w[(c * outputs + channel) * 9 + k] * x[(((size_t)blockIdx.z * inputs + c) * size + row) * size + column];
    }
  }
  out[((size_t)blockIdx.z * outputs + channel) * width * width + pixel] = sum;
}
'''
transposed = cp.RawKernel(source, "transposed")


def forward(x, weight):
    batch, inputs, size, _ = x.shape
    outputs = weight.shape[1]
    width = size + 2
    out = cp.empty((batch, outputs, width, width), cp.float32)
    grid = ((width * width + 255) // 256, outputs, batch)
    transposed(grid, (256,), (x, weight, out, inputs, outputs, size))
    return out
