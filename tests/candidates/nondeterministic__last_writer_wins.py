# task: 1_019
"""Two threads write each element, one of them a zero."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = fmaxf(x[i], 0.0f);
    out[(i + 256 * 40) % n] = fmaxf(x[(i + 256 * 40) % n], 0.0f) * (blockIdx.x % 2);
  }
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
