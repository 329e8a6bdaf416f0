# task: 1_019
"""Throws."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n) { try { if (x[i] < 0.0f) throw 1; out[i] = x[i]; } catch (int) { out[i] = 0.0f; } }
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
