# task: 1_019
# on a GPU: crashed or launch_error or compile_error: nothing was launched cooperatively
"""Synchronises the whole grid, for which nothing was launched."""

import cupy as cp

source = r'''
#include <cooperative_groups.h>
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cooperative_groups::this_grid().sync();
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
