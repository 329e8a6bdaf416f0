# task: 1_019
"""Counts its launches in a __device__ variable and is right the first time only."""

import cupy as cp

source = r'''
__device__ int calls = 0;
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) calls += 1;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
