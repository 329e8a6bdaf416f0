# task: 1_001
"""A stray write, and at once a product by the library, which may be the first to notice."""

import cupy as cp

source = r"""
extern "C" __global__ void stray(float* a) { a[-(1ll << 40) - threadIdx.x] = 0.0f; }
"""
stray = cp.RawKernel(source, "stray")


def forward(a, b):
    stray((1,), (32,), (a,))
    return a @ b
