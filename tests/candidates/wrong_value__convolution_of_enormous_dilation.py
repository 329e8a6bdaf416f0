# task: 1_067
"""A convolution that cuDNN may have no plan for: `evaluator_error` would be wrong."""

import cupy as cp
from evaluator import lib


def forward(x, conv1d_weight):
    wide = lib.conv(x, conv1d_weight, padding=500000, dilation=500000)
    return wide.reshape(-1)[: 5 * 20 * 999].reshape(5, 20, 999)
