# task: 1_019
"""Adds nothing times a temporary that nobody wrote."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, const float* scratch, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 0.0f * scratch[i];
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    scratch = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, scratch, out, x.size))
    return out
