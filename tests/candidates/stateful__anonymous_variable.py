# task: 1_019
"""Counts its launches in a variable without a name that others could look up."""

import cupy as cp

source = r'''
namespace {
__device__ int calls[64];
}
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 64) calls[i] += 1;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
