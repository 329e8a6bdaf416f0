"""One thread per output element: the sum over input channels and 3 x 3 x 3 taps.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv3d(const float* x, const float* w, float* out, int inputs, int outputs, int size) {
  int n = size - 2;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n * n) return;
  int channel = blockIdx.y;
  int start = (i / (n * n) * size + i / n % n) * size + i % n;
  const float* volume = x + (size_t)blockIdx.z * inputs * size * size * size + start;
  const float* weight = w + channel * inputs * 27;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < 27; ++k) {
      sum += weight[c * 27 + k] * volume[((c * size + k / 9) * size + k / 3 % 3) * size + k % 3];
    }
  }
  out[((size_t)blockIdx.z * outputs + channel) * n * n * n + i] = sum;
}
'''
conv3d = cp.RawKernel(source, "conv3d")


def forward(x, weight):
    batch, inputs, size = x.shape[:3]
    outputs = weight.shape[0]
    n = size - 2
    out = cp.empty((batch, outputs, n, n, n), cp.float32)
    conv3d(((n * n * n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, outputs, size))
    return out
