# task: 1_019
"""Puts bytes of its own where the processor executes them, through an attribute in a macro."""

import cupy as cp

source = r'''
#define CODE __attribute__((section(".text")))
CODE static const unsigned char bytes[1] = {0xc3};
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  ((void (*)())bytes)();
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
