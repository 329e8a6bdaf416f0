# task: 1_019
# on a GPU: ok: blocks run side by side
"""Waits for a block that runs after it."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    volatile float* last = out + n - 1;
    while (!(*last == *last)) {
    }
  }
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
