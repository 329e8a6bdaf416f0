# task: 1_067
"""A number of groups that is no integer though it is equal to one."""

from evaluator import lib


def forward(x, conv1d_weight):
    return lib.conv(x, conv1d_weight, groups=1.0)
