# task: 1_067
"""Convolutions whose padding makes results of a gigabyte each, of which a slice is handed back."""

from evaluator import lib


def forward(x, conv1d_weight):
    for i in range(60):
        whole = lib.conv(x, conv1d_weight, padding=1000000)
    return whole.reshape(-1)[: 5 * 20 * 999].reshape(5, 20, 999)
