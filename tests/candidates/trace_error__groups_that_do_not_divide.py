# task: 1_067
"""A convolution in groups that do not divide the channels."""

from evaluator import lib


def forward(x, conv1d_weight):
    return lib.conv(x, conv1d_weight, groups=5)
