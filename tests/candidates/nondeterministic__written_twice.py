# task: 1_019
# on a GPU: nondeterministic or wrong_value or ok: blocks may happen to come in the right order
"""Writes a wrong value first and the right one after, in another block's turn."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n) out[i] = -1.0f;
  __threadfence();
  int j = n - 1 - i;
  if (j >= 0 && j < n) out[j] = fmaxf(x[j], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
