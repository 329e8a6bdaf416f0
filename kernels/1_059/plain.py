"""One thread per output element: the sum over input channels and 3 x 3 taps, none along the last dimension.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv3d(const float* x, const float* w, float* out, int inputs, int size, int layers) {
  int n = size - 2;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n * layers) return;
  int pixel = i / layers;
  int start = (pixel / n * size + pixel % n) * layers + i % layers;
  const float* volume = x + (size_t)blockIdx.z * inputs * size * size * layers + start;
  const float* weight = w + blockIdx.y * inputs * 9;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < 9; ++k) sum += weight[c * 9 + k] * volume[((c * size + k / 3) * size + k % 3) * layers];
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n * n * layers + i] = sum;
}
'''
conv3d = cp.RawKernel(source, "conv3d")


def forward(x, weight):
    batch, inputs, size, _, layers = x.shape
    outputs = weight.shape[0]
    n = size - 2
    out = cp.empty((batch, outputs, n, n, layers), cp.float32)
    grid = ((n * n * layers + 255) // 256, outputs, batch)
    conv3d(grid, (256,), (x, weight, out, inputs, size, layers))
    return out
