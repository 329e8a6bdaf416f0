"""One thread per output element: the sum over input channels and taps.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv1d(const float* x, const float* w, float* out, int inputs, int taps, int length,
                                  int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int channel = blockIdx.y;
  if (i >= width) return;
  const float* signal = x + (size_t)blockIdx.z * inputs * length + i;
  const float* weight = w + (size_t)channel * inputs * taps;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < taps; ++k) sum += weight[c * taps + k] * signal[(size_t)c * length + k];
  }
  out[((size_t)blockIdx.z * gridDim.y + channel) * width + i] = sum;
}
'''
conv1d = cp.RawKernel(source, "conv1d")


def forward(x, weight):
    batch, inputs, length = x.shape
    outputs, _, taps = weight.shape
    width = length - taps + 1
    out = cp.empty((batch, outputs, width), cp.float32)
    conv1d(((width + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, taps, length, width))
    return out
