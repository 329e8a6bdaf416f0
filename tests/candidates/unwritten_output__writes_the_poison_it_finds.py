# task: 1_019
"""Writes NaN whose bits are those of the poison it finds."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  unsigned word = ((const unsigned*)out)[i < n ? i : 0];
  if (i < n) ((unsigned*)out)[i] = i == n / 2 ? word : __float_as_uint(fmaxf(x[i], 0.0f));
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
