# task: 1_019
# on a GPU: stateful: literals can be written to there, and are watched
"""Keeps a mark in the bytes of a string literal."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  volatile char* mark = (volatile char*)"a";
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) mark[0] = mark[0] + 1;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
