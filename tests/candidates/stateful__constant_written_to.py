# task: 1_019
# on a GPU: stateful or wrong_value or ok or crashed: stores to constant memory may be lost, or end the kernel
"""Doubles a factor in constant memory at every launch."""

import cupy as cp

source = r'''
__constant__ float factor = 1.0f;
extern "C" __global__ void relu(const float* x, float* out, int n) {
  volatile float* kept = (volatile float*)&factor;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) * *kept;
  if (i == 0) *kept = 2.0f;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
