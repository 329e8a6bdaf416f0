"""One thread per output element: the sum over input channels and three taps, four apart; outputs are three apart.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv1d(const float* x, const float* w, float* out, int inputs, int length, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  const float* signal = x + (size_t)blockIdx.z * inputs * length + 3 * i;
  const float* weight = w + blockIdx.y * inputs * 3;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < 3; ++k) sum += weight[c * 3 + k] * signal[(size_t)c * length + 4 * k];
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * width + i] = sum;
}
'''
conv1d = cp.RawKernel(source, "conv1d")


def forward(x, weight):
    batch, inputs, length = x.shape
    outputs = weight.shape[0]
    width = (length - 9) // 3 + 1
    out = cp.empty((batch, outputs, width), cp.float32)
    conv1d(((width + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, length, width))
    return out
