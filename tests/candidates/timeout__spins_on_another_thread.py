# task: 1_019
# on a GPU: ok or timeout: thread 255 may run meanwhile
"""Waits in shared memory for a thread behind it, without a barrier."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  __shared__ volatile int ready;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) {
    ready = 0;
    while (!ready) {}
  }
  if (threadIdx.x == 255) ready = 1;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
