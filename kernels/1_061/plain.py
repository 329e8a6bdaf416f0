"""One thread per output element: the sum over input channels and those of the 27 taps that reach it.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void transposed(const float* x, const float* w, float* out, int inputs, int outputs, int size) {
  int n = size + 2;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n * n) return;
  int channel = blockIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < 27; ++k) {
    int z = i / (n * n) - k / 9;
    int y = i / n % n - k / 3 % 3;
    int column = i % n - k % 3;
    if (z < 0 || z >= size || y < 0 || y >= size || column < 0 || column >= size) continue;
    for (int c = 0; c < inputs; ++c) {
      size_t from = ((((size_t)blockIdx.z * inputs + c) * size + z) * size + y) * size + column;
      sum += w[(c * outputs + channel) * 27 + k] * x[from];
    }
  }
  out[((size_t)blockIdx.z * outputs + channel) * n * n * n + i] = sum;
}
'''
transposed = cp.RawKernel(source, "transposed")


def forward(x, weight):
    batch, inputs, size = x.shape[:3]
    outputs = weight.shape[1]
    n = size + 2
    out = cp.empty((batch, outputs, n, n, n), cp.float32)
    transposed(((n * n * n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, outputs, size))
    return out
