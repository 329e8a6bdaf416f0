# task: 1_019
# on a GPU: compile_error or timeout
"""A constant that fills the compiler's disk."""

import cupy as cp

source = r'''
__constant__ int many[1 << 30] = {1};
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
  if (i == 0 && many[n] == 7) out[0] = 0.0f;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
