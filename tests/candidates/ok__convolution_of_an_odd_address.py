# task: 1_067
"""The right result from a copy of the input that begins four bytes behind an aligned address."""

import cupy as cp
from evaluator import lib


def forward(x, conv1d_weight):
    padded = cp.empty((x.size + 1,), cp.float32)
    padded[1:] = x.reshape(-1)
    return lib.conv(padded[1:].reshape(x.shape), conv1d_weight)
