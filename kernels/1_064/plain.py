"""One thread per output element: the sum over input channels and the taps that reach it.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void transposed(const float* x, const float* w, float* out, int inputs, int taps, int length,
                                      int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int channel = blockIdx.y;
  if (i >= width) return;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    const float* signal = x + ((size_t)blockIdx.z * inputs + c) * length;
    const float* weight = w + ((size_t)c * gridDim.y + channel) * taps;
    for (int k = 0; k < taps; ++k) {
      if (i >= k && i - k < length) sum += weight[k] * signal[i - k];
    }
  }
  out[((size_t)blockIdx.z * gridDim.y + channel) * width + i] = sum;
}
'''
transposed = cp.RawKernel(source, "transposed")


def forward(x, weight):
    batch, inputs, length = x.shape
    _, outputs, taps = weight.shape
    width = length + taps - 1
    out = cp.empty((batch, outputs, width), cp.float32)
    transposed(((width + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, taps, length, width))
    return out
