"""Transposed convolutions of KernelBench level 1 over one to three dimensions."""

import functools

from evaluator.tasks.conv_notation import Size, conv_transpose, convolution, sizes

_1D = functools.partial(conv_transpose, name="conv1d_transpose", bias=False)
_2D = functools.partial(conv_transpose, name="conv_transpose2d", bias=False)
_3D = functools.partial(conv_transpose, name="conv_transpose3d", bias=False)


def conv_1d(nn, x, conv1d_transpose_weight):
    return nn.conv_transpose1d(x, conv1d_transpose_weight)


def conv_1d_dilated(nn, x, conv1d_transpose_weight):
    return nn.conv_transpose1d(x, conv1d_transpose_weight, dilation=3)


def conv_1d_strided_padded_dilated(nn, x, conv1d_transpose_weight):
    return nn.conv_transpose1d(x, conv1d_transpose_weight, stride=2, padding=1, dilation=2)


def conv_2d(nn, x, conv_transpose2d_weight):
    return nn.conv_transpose2d(x, conv_transpose2d_weight)


def conv_2d_padded(nn, x, conv_transpose2d_weight):
    return nn.conv_transpose2d(x, conv_transpose2d_weight, padding=(1, 3))


def conv_2d_padded_v0(nn, x, conv_transpose2d_weight):
    return nn.conv_transpose2d(x, conv_transpose2d_weight, padding=(1, 2))


def conv_2d_strided_padded_dilated(nn, x, conv_transpose2d_weight):
    return nn.conv_transpose2d(x, conv_transpose2d_weight, stride=5, padding=1, dilation=2)


def conv_2d_grouped(nn, x, conv_transpose2d_weight):
    return nn.conv_transpose2d(x, conv_transpose2d_weight, stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=4)


def conv_3d(nn, x, conv_transpose3d_weight):
    return nn.conv_transpose3d(x, conv_transpose3d_weight)


def conv_3d_grouped(nn, x, conv_transpose3d_weight):
    return nn.conv_transpose3d(x, conv_transpose3d_weight, stride=2, padding=(1, 2, 3), output_padding=1, groups=4)


def conv_3d_strided_padded(nn, x, conv_transpose3d_weight):
    return nn.conv_transpose3d(x, conv_transpose3d_weight, stride=2, padding=1)


def conv_3d_strided_padded_v0(nn, x, conv_transpose3d_weight):
    return nn.conv_transpose3d(x, conv_transpose3d_weight, stride=2, padding=3)


def conv_3d_strided_padded_dilated(nn, x, conv_transpose3d_weight):
    return nn.conv_transpose3d(x, conv_transpose3d_weight, stride=2, padding=1, dilation=2)


CONV_1D = convolution(
    "1_064",
    "conv_transposed_1D",
    conv_1d,
    sizes(
        _1D,
        cpu=Size((5, 12, 1001), 20),
        kb=Size((64, 128, 65536), 128),
        kb_v0=Size((16, 64, 128), 3),
    ),
)

CONV_1D_DILATED = convolution(
    "1_074",
    "conv_transposed_1D_dilated",
    conv_1d_dilated,
    sizes(
        _1D,
        cpu=Size((5, 11, 1001), 14, 5),
        kb=Size((32, 32, 131072), 64, 5),
        kb_v0=Size((16, 3, 256), 64, 5),
    ),
)

CONV_1D_STRIDED_PADDED_DILATED = convolution(
    "1_079",
    "conv_transposed_1D_asymmetric_input_square_kernel___padded____strided____dilated",
    conv_1d_strided_padded_dilated,
    sizes(
        _1D,
        cpu=Size((5, 15, 701), 20),
        kb=Size((16, 32, 131072), 64),
        kb_v0=Size((16, 32, 128), 64),
    ),
)

CONV_2D = convolution(
    "1_057",
    "conv_transposed_2D__square_input__square_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((3, 12, 41, 41), 9),
        kb=Size((8, 64, 1024, 1024), 64),
        kb_v0=Size((16, 32, 128, 128), 64),
    ),
)

CONV_2D_UNEVEN_KERNEL = convolution(
    "1_065",
    "conv_transposed_2D__square_input__asymmetric_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((2, 10, 33, 33), 9, (3, 7)),
        kb=Size((8, 64, 512, 512), 64, (3, 7)),
        kb_v0=Size((16, 32, 128, 128), 64, (3, 5)),
    ),
)

CONV_2D_WIDE_UNEVEN_KERNEL = convolution(
    "1_069",
    "conv_transposed_2D__asymmetric_input__asymmetric_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((3, 9, 23, 45), 11, (3, 5)),
        kb=Size((64, 64, 128, 256), 128, (3, 5)),
        kb_v0=Size((16, 32, 16, 32), 64, (3, 5)),
    ),
)

CONV_2D_WIDE = convolution(
    "1_071",
    "conv_transposed_2D__asymmetric_input__square_kernel",
    conv_2d,
    sizes(
        _2D,
        cpu=Size((3, 12, 29, 53), 9),
        kb=Size((8, 32, 512, 1024), 32),
        kb_v0=Size((16, 32, 128, 256), 64),
    ),
)

CONV_2D_GROUPED = convolution(
    "1_075",
    "conv_transposed_2D_asymmetric_input_asymmetric_kernel_strided__grouped____padded____dilated",
    conv_2d_grouped,
    sizes(
        _2D,
        cpu=Size((3, 12, 17, 27), 20, (3, 5), groups=4),
        kb=Size((16, 32, 128, 256), 64, (3, 5), groups=4),
        kb_v0=Size((16, 32, 128, 256), 64, (3, 5), groups=4),
    ),
)

CONV_2D_PADDED = convolution(
    "1_078",
    "conv_transposed_2D_asymmetric_input_asymmetric_kernel___padded",
    conv_2d_padded,
    sizes(
        _2D,
        cpu=Size((2, 10, 25, 45), 9, (3, 7)),
        kb=Size((8, 32, 512, 1024), 32, (3, 7)),
        kb_v0=Size((16, 32, 128, 256), 64, (3, 5)),
    ),
    version0=conv_2d_padded_v0,
)

CONV_2D_STRIDED_PADDED_DILATED = convolution(
    "1_081",
    "conv_transposed_2D_asymmetric_input_square_kernel___dilated____padded____strided",
    conv_2d_strided_padded_dilated,
    sizes(
        _2D,
        cpu=Size((2, 6, 13, 23), 10),
        kb=Size((16, 32, 64, 128), 64),
        kb_v0=Size((16, 32, 64, 128), 64),
    ),
)

CONV_3D = convolution(
    "1_061",
    "conv_transposed_3D__square_input__square_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 5, 15, 15, 15), 6),
        kb=Size((8, 48, 64, 64, 64), 48),
        kb_v0=Size((16, 3, 32, 32, 32), 64),
    ),
)

CONV_3D_THIN_UNEVEN_KERNEL = convolution(
    "1_058",
    "conv_transposed_3D__asymmetric_input__asymmetric_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 5, 6, 11, 17), 4, (3, 5, 7)),
        kb=Size((16, 32, 16, 32, 64), 16, (3, 5, 7)),
        kb_v0=Size((16, 32, 16, 32, 64), 16, (3, 5, 7)),
    ),
)

CONV_3D_UNEVEN_KERNEL = convolution(
    "1_068",
    "conv_transposed_3D__square_input__asymmetric_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 5, 11, 11, 11), 5, (3, 5, 5)),
        kb=Size((16, 32, 64, 64, 64), 64, (3, 5, 5)),
        kb_v0=Size((16, 32, 64, 64, 64), 64, (3, 5, 5)),
    ),
)

CONV_3D_LARGE = convolution(
    "1_070",
    "conv_transposed_3D__asymmetric_input__square_kernel",
    conv_3d,
    sizes(
        _3D,
        cpu=Size((2, 6, 9, 17, 19), 5),
        kb=Size((8, 48, 96, 96, 96), 24),
        kb_v0=Size((16, 32, 16, 32, 64), 16),
    ),
)

CONV_3D_GROUPED = convolution(
    "1_072",
    "conv_transposed_3D_asymmetric_input_asymmetric_kernel___strided_padded_grouped",
    conv_3d_grouped,
    sizes(
        _3D,
        cpu=Size((2, 8, 5, 7, 11), 12, (3, 5, 7), groups=4),
        kb=Size((8, 32, 12, 24, 48), 32, (3, 5, 7), groups=4),
        kb_v0=Size((16, 32, 16, 32, 64), 64, (3, 5, 7), groups=4),
    ),
)

CONV_3D_STRIDED_PADDED = convolution(
    "1_073",
    "conv_transposed_3D_asymmetric_input_square_kernel__strided_padded__grouped",
    conv_3d_strided_padded,
    sizes(
        _3D,
        cpu=Size((2, 7, 6, 9, 15), 9),
        kb=Size((4, 32, 32, 64, 128), 32),
        kb_v0=Size((16, 32, 16, 32, 32), 64),
    ),
    version0=conv_3d_strided_padded_v0,
    notes=("Named grouped, yet the benchmark's argument for groups reaches another parameter: there is one group.",),
)

CONV_3D_STRIDED_PADDED_DILATED = convolution(
    "1_077",
    "conv_transposed_3D_square_input_square_kernel___padded____dilated____strided",
    conv_3d_strided_padded_dilated,
    sizes(
        _3D,
        cpu=Size((2, 7, 7, 11, 11), 9),
        kb=Size((16, 32, 16, 32, 32), 64),
        kb_v0=Size((16, 32, 16, 32, 32), 64),
    ),
)
