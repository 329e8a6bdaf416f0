"""One thread per output element: the sum over input channels and 3 x 5 x 7 taps.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, float* out, int inputs, int depth, int height,
                                int width, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int down = height - 4, across = width - 6;
  int from = (i / (down * across) * height + i / across % down) * width + i % across;
  x += (size_t)blockIdx.z * inputs * depth * height * width + from;
  w += blockIdx.y * inputs * 105;
  float sum = 0.0f;
  for (int c = 0; c < inputs; ++c) {
    for (int k = 0; k < 105; ++k) {
      sum += *w++ * x[((c * depth + k / 35) * height + k / 7 % 5) * width + k % 7];
    }
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight):
    batch, inputs, depth, height, width = x.shape
    outputs = weight.shape[0]
    out = cp.empty((batch, outputs, depth - 2, height - 4, width - 6), cp.float32)
    n = (depth - 2) * (height - 4) * (width - 6)
    conv(((n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, depth, height, width, n))
    return out
