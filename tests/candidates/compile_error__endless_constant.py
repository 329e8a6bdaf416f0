# task: 1_019
"""A constant whose evaluation never ends."""

import cupy as cp

source = r'''
constexpr int endless() {
  int i = 0;
  while (true) i = (i + 1) % 7;
  return i;
}
constexpr int zero = endless();
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], (float)zero);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
