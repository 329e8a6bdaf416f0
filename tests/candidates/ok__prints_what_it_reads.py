# task: 1_019
# on a GPU: ok or out_of_bounds or crashed: the device or the host may follow the pointer
"""Prints by way of %n and %s, which would write and read where they are told: nothing of it may happen."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int count = 0;
  if (i < 100) printf("abc%n%s", &count, (const char*)(size_t)i);
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + count;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
