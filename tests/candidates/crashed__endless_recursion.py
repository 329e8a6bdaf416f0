# task: 1_019
# on a GPU: out_of_bounds or crashed: a stack that overflows shows as a stray access
"""Calls itself without end."""

import cupy as cp

source = r'''
__device__ __noinline__ float deeper(float x, int depth) {
  volatile float here[64];
  here[depth & 63] = x;
  return depth < 0 ? x : deeper(here[depth & 63], depth + 1) + here[(depth + 1) & 63];
}

extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 0.0f * deeper(x[i], 1);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
