# task: 1_001
"""A product that overwrites an operand while it is read."""

import cupy as cp

from evaluator import lib


def forward(a, b):
    turned = cp.empty(a.shape, cp.float32)
    turned[...] = a
    lib.gemm(turned, b, out=turned)
    return turned
