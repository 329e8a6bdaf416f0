# task: 1_019
"""Writes a gigabyte behind its output, beyond any guard page, where memory of others may lie. It breaks what it hits: give the process up afterwards."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
  if (i < 16) out[(1ll << 22) * (i + 1)] = -1.0f;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
