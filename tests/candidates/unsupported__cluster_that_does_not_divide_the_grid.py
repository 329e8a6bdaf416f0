# task: 1_019
# on a GPU: launch_error
"""Clusters of three blocks in a grid that three does not divide."""

import cupy as cp

source = r'''
extern "C" __global__ void __cluster_dims__(3, 1, 1) relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256 // 3 * 3 + 1,), (256,), (x, out, x.size))
    return out
