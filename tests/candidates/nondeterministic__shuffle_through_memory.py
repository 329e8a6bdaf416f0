# task: 1_019
# on a GPU: ok or wrong_value: threads of a warp run in step, as a rule
"""Neighbours of a warp exchange numbers without a barrier."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  __shared__ volatile float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  float other = tile[threadIdx.x ^ 1];
  tile[threadIdx.x] = 0.0f;
  if (i < n) out[i] = fmaxf(other == 0.0f ? 0.0f : x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
