# task: 1_019
"""A function that would run before the kernel, by an attribute that only a compile option spells."""

import cupy as cp

source = r'''
__attribute__((early)) void begin() {}
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu", options=("-Dearly=constructor",))


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
