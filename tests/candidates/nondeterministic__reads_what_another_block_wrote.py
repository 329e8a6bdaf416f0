# task: 1_019
"""Each block hands the next one a number in the same launch."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* chain, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) chain[blockIdx.x + 1] = 1.0f;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) * chain[blockIdx.x];
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    chain = cp.zeros(((x.size + 255) // 256 + 1,), cp.float32)
    chain[:1] = 1
    relu(((x.size + 255) // 256,), (256,), (x, chain, out, x.size))
    return out
