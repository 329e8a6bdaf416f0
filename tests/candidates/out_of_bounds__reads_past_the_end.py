# task: 1_019
"""Reads one element past its input, whose value does not matter."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float next = x[i + 1];
    out[i] = next > 1e30f ? 0.0f : fmaxf(x[i], 0.0f);
  }
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
