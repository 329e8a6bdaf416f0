# task: 1_019
"""Multiplies by a number below the smallest normal one and divides by it again."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  float tiny = 1.0e-40f;
  if (i < n) { float y = fmaxf(x[i], 0.0f); volatile float z = y * tiny; out[i] = z > 0.0f ? y : 0.0f; }
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
