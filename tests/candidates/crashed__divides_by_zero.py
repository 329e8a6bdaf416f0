# task: 1_019
# on a GPU: wrong_value: division by zero is no fault there
"""Divides whole numbers by zero."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n, int zero) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + (float)(i / zero);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size, 0))
    return out
