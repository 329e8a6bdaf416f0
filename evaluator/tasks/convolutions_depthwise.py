"""Depthwise, pointwise and depthwise separable convolutions of KernelBench level 1."""

import functools

from evaluator.tasks.conv_notation import Size, conv, convolution, sizes
from evaluator.tasks.notation import layer
from evaluator.tasks.task import Array

_2D = functools.partial(conv, name="conv2d", bias=False)


def depthwise(nn, x, conv2d_weight):
    return nn.conv2d(x, conv2d_weight, groups=x.shape[1])


def separable(nn, x, depthwise_weight, pointwise_weight):
    x = nn.conv2d(x, depthwise_weight, padding=1, groups=x.shape[1])
    return nn.conv2d(x, pointwise_weight)


def separable_v0(nn, x, depthwise_weight, pointwise_weight):
    x = nn.conv2d(x, depthwise_weight, groups=x.shape[1])
    return nn.conv2d(x, pointwise_weight)


def pointwise(nn, x, conv1d_weight):
    return nn.conv2d(x, conv1d_weight)


def _two_layers(size: Size) -> tuple[Array, ...]:
    inputs = size.x[1]
    per_channel = layer("depthwise", (inputs, 1, *size.window), bias=False)
    return per_channel + layer("pointwise", (size.channels, inputs, 1, 1), bias=False)


DEPTHWISE = convolution(
    "1_082",
    "conv_depthwise_2D_square_input_square_kernel",
    depthwise,
    sizes(
        _2D,
        cpu=Size((5, 13, 75, 75), 13, groups=13),
        kb=Size((16, 64, 512, 512), 64, groups=64),
        kb_v0=Size((16, 3, 256, 256), 3, groups=3),
    ),
)

DEPTHWISE_COLUMN_KERNEL = convolution(
    "1_083",
    "conv_depthwise_2D_square_input_asymmetric_kernel",
    depthwise,
    sizes(
        _2D,
        cpu=Size((8, 11, 115, 115), 11, (3, 1), groups=11),
        kb=Size((64, 8, 512, 512), 8, (3, 1), groups=8),
        kb_v0=Size((16, 3, 256, 256), 3, (3, 1), groups=3),
    ),
)

DEPTHWISE_WIDE = convolution(
    "1_084",
    "conv_depthwise_2D_asymmetric_input_square_kernel",
    depthwise,
    sizes(
        _2D,
        cpu=Size((5, 13, 53, 107), 13, groups=13),
        kb=Size((64, 128, 256, 512), 128, groups=128),
        kb_v0=Size((16, 3, 128, 256), 3, groups=3),
    ),
)

DEPTHWISE_WIDE_UNEVEN_KERNEL = convolution(
    "1_085",
    "conv_depthwise_2D_asymmetric_input_asymmetric_kernel",
    depthwise,
    sizes(
        _2D,
        cpu=Size((5, 12, 53, 85), 12, (3, 7), groups=12),
        kb=Size((32, 128, 128, 256), 128, (3, 7), groups=128),
        kb_v0=Size((16, 3, 128, 256), 3, (3, 5), groups=3),
    ),
)

SEPARABLE = convolution(
    "1_086",
    "conv_depthwise_separable_2D",
    separable,
    sizes(
        _two_layers,
        cpu=Size((3, 10, 45, 45), 21),
        kb=Size((16, 64, 512, 512), 128),
        kb_v0=Size((16, 3, 256, 256), 64),
    ),
    version0=separable_v0,
)

POINTWISE = convolution(
    "1_087",
    "conv_pointwise_2D",
    pointwise,
    sizes(
        functools.partial(conv, name="conv1d", bias=False),
        cpu=Size((3, 20, 53, 53), 28, 1),
        kb=Size((16, 64, 1024, 1024), 128, 1),
        kb_v0=Size((16, 3, 256, 256), 64, 1),
    ),
)
