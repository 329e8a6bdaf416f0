# task: 1_019
# on a GPU: out_of_bounds or ok: something may be mapped there
"""Reaches its neighbour by an offset of nearly 2^64."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
  if (i == 0) out[0] = *(const float*)((const char*)x - 0x2000000ull);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
