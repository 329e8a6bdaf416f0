# task: 1_067
"""Padding below zero, which would read outside the input."""

from evaluator import lib


def forward(x, conv1d_weight):
    return lib.conv(x, conv1d_weight, padding=-1)
