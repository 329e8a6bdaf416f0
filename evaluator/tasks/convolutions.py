"""Convolutions of KernelBench level 1 over one to three dimensions, dense."""

import functools

from evaluator.tasks.conv_notation import Size, conv, convolution, sizes
from evaluator.tasks.notation import layer, normal, uniform

_1D = functools.partial(conv, name="conv1d", bias=False)
_2D = functools.partial(conv, name="conv2d", bias=False)
_3D = functools.partial(conv, name="conv3d", bias=False)


def conv_1d(nn, x, conv1d_weight):
    return nn.conv1d(x, conv1d_weight)


def conv_1d_dilated_strided(nn, x, conv1d_weight):
    return nn.conv1d(x, conv1d_weight, stride=3, dilation=4)


def conv_2d(nn, x, conv2d_weight):
    return nn.conv2d(x, conv2d_weight)


def conv_2d_first_of_alexnet(nn, x, conv1_weight, conv1_bias):
    return nn.conv2d(x, conv1_weight, conv1_bias, stride=4, padding=2)


def product(nn, x):
    return nn.prod(x, dim=1)


def conv_2d_dilated_padded(nn, x, conv2d_weight):
    return nn.conv2d(x, conv2d_weight, padding=(2, 4), dilation=(2, 3))


def conv_2d_dilated_padded_v0(nn, x, conv2d_weight):
    return nn.conv2d(x, conv2d_weight, padding=(1, 2), dilation=(2, 1))


def conv_3d(nn, x, conv3d_weight):
    return nn.conv3d(x, conv3d_weight)


ALEXNET = convolution(
    "1_050",
    "conv_standard_2D__square_input__square_kernel",
    conv_2d_first_of_alexnet,
    {
        "cpu": uniform(x=(2, 3, 71, 71)) + layer("conv1", (27, 3, 11, 11)),
        "kb": uniform(x=(256, 3, 224, 224)) + layer("conv1", (96, 3, 11, 11)),
        "kb_v0": normal(x=(16, 256, 256)),
    },
    version0=product,
    notes=("At kb_v0 the task is another one: a product over dimension 1.",),
)

CONV_1D = convolution(
    "1_067",
    "conv_standard_1D",
    conv_1d,
    sizes(
        _1D,
        cpu=Size((5, 12, 1001), 20),
        kb=Size((32, 64, 131072), 128),
        kb_v0=Size((16, 3, 512), 64),
    ),
)

CONV_1D_DILATED_STRIDED = convolution(
    "1_076",
    "conv_standard_1D_dilated_strided",
    conv_1d_dilated_strided,
    sizes(
        _1D,
        cpu=Size((5, 24, 1507), 36),
        kb=Size((64, 64, 524280), 128),
        kb_v0=Size((16, 3, 256), 64),
    ),
)

CONV_2D = convolution(
    "1_063",
    "conv_standard_2D__square_input__square_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((3, 6, 45, 45), 18),
        kb=Size((16, 16, 1024, 1024), 128),
        kb_v0=Size((16, 3, 256, 256), 64),
    ),
)

CONV_2D_WIDE = convolution(
    "1_055",
    "conv_standard_2D__asymmetric_input__square_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((3, 6, 35, 61), 18),
        kb=Size((8, 64, 512, 1024), 128),
        kb_v0=Size((16, 3, 128, 256), 64),
    ),
)

CONV_2D_TALL_UNEVEN_KERNEL = convolution(
    "1_056",
    "conv_standard_2D__asymmetric_input__asymmetric_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((2, 5, 45, 29), 14, (5, 7)),
        kb=Size((8, 64, 512, 256), 128, (5, 7)),
        kb_v0=Size((16, 3, 256, 128), 64, (3, 5)),
    ),
)

CONV_2D_UNEVEN_KERNEL = convolution(
    "1_062",
    "conv_standard_2D__square_input__asymmetric_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((2, 5, 39, 39), 10, (5, 9)),
        kb=Size((8, 32, 512, 512), 64, (5, 9)),
        kb_v0=Size((16, 3, 256, 256), 64, (3, 5)),
    ),
)

CONV_2D_DILATED_PADDED = convolution(
    "1_080",
    "conv_standard_2D_square_input_asymmetric_kernel___dilated____padded",
    conv_2d_dilated_padded,
    sizes(
        _2D,
        cpu=Size((2, 5, 37, 37), 10, (5, 9)),
        kb=Size((8, 32, 512, 512), 64, (5, 9)),
        kb_v0=Size((16, 3, 256, 256), 64, (3, 5)),
    ),
    version0=conv_2d_dilated_padded_v0,
)

CONV_3D = convolution(
    "1_054",
    "conv_standard_3D__square_input__square_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 3, 18, 18, 18), 10),
        kb=Size((16, 3, 64, 64, 64), 64),
        kb_v0=Size((16, 3, 64, 64, 64), 64),
    ),
)

CONV_3D_FLAT_KERNEL = convolution(
    "1_059",
    "conv_standard_3D__asymmetric_input__square_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 3, 30, 30, 7), 13, (3, 3, 1)),
        kb=Size((16, 3, 256, 256, 10), 64, (3, 3, 1)),
        kb_v0=Size((16, 3, 256, 256, 10), 64, (3, 3, 1)),
    ),
)

CONV_3D_UNEVEN_KERNEL = convolution(
    "1_060",
    "conv_standard_3D__square_input__asymmetric_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 3, 15, 15, 15), 6, (3, 5, 7)),
        kb=Size((16, 3, 64, 64, 64), 64, (3, 5, 7)),
        kb_v0=Size((16, 3, 64, 64, 64), 64, (3, 5, 7)),
    ),
)

CONV_3D_THIN_UNEVEN_KERNEL = convolution(
    "1_066",
    "conv_standard_3D__asymmetric_input__asymmetric_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 3, 7, 22, 23), 7, (3, 5, 7)),
        kb=Size((8, 3, 16, 128, 128), 64, (3, 5, 7)),
        kb_v0=Size((16, 3, 16, 256, 256), 64, (3, 5, 7)),
    ),
)
