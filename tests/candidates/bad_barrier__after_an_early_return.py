# task: 1_019
"""Threads beyond the end leave before the barrier."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n - 5) return;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  out[i] = fmaxf(tile[threadIdx.x], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
