"""Chains of a 2-D convolution, plain or transposed, and element-wise operations, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import VERSION0_2D, Size, conv, conv_transpose, per_channel, sizes

_SMALL = Size((3, 6, 45, 41), 18)


def add_clamp_scale_clamp_divide(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.clamp(x + bias, min=0.0, max=1.0)
    return nn.clamp(x * 2.0, min=0.0, max=1.0) / 2.0


def mish_mish(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    return nn.mish(nn.mish(x))


def mish_add_hardtanh_scale(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    return nn.hardtanh(nn.mish(x) + 0.5, min_val=-1, max_val=1) * 2


def min_add_multiply(nn, x, bias, conv_weight, conv_bias):
    x = nn.minimum(nn.conv2d(x, conv_weight, conv_bias), 0.5)
    return (x + bias) * 2.0


def relu_hardswish(nn, x, conv_weight, conv_bias):
    x = nn.relu(nn.conv2d(x, conv_weight, conv_bias))
    return x * nn.clamp((x + 3) / 6, min=0, max=1)


def hardswish_relu(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    return nn.relu(nn.hardswish(x))


def divide_leaky_relu(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias) / 2
    return nn.leaky_relu(x, negative_slope=0.01)


def subtract_subtract_mish(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    return nn.mish(x - 0.5 - 0.2)


def add_min_gelu_multiply(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2)
    return nn.gelu(nn.minimum(x + 0.5, 0.0)) * 2.0


ADD_CLAMP_SCALE_CLAMP_DIVIDE = chain(
    "2_002",
    "ConvTranspose2d_BiasAdd_Clamp_Scaling_Clamp_Divide",
    add_clamp_scale_clamp_divide,
    sizes(
        per_channel("bias"),
        conv_transpose,
        cpu=Size((3, 10, 29, 27), 9),
        kb=Size((128, 64, 128, 128), 64),
        kb_v0=VERSION0_2D,
    ),
)

MISH_MISH = chain(
    "2_004",
    "Conv2d_Mish_Mish",
    mish_mish,
    sizes(conv, cpu=_SMALL, kb=Size((64, 64, 256, 256), 128), kb_v0=VERSION0_2D),
)

MISH_ADD_HARDTANH_SCALE = chain(
    "2_016",
    "ConvTranspose2d_Mish_Add_Hardtanh_Scaling",
    mish_add_hardtanh_scale,
    sizes(
        conv_transpose,
        cpu=Size((3, 10, 29, 27), 9),
        kb=Size((128, 64, 128, 128), 64),
        kb_v0=Size((128, 32, 16, 16), 64, kernel=4),
    ),
)

MIN_ADD_MULTIPLY = chain(
    "2_031",
    "Conv2d_Min_Add_Multiply",
    min_add_multiply,
    sizes(per_channel("bias"), conv, cpu=_SMALL, kb=Size((128, 64, 128, 128), 128), kb_v0=VERSION0_2D),
)

RELU_HARDSWISH = chain(
    "2_057",
    "Conv2d_ReLU_HardSwish",
    relu_hardswish,
    sizes(conv, cpu=_SMALL, kb=Size((128, 8, 128, 128), 64), kb_v0=VERSION0_2D),
)

HARDSWISH_RELU = chain(
    "2_069",
    "Conv2d_HardSwish_ReLU",
    hardswish_relu,
    sizes(conv, cpu=_SMALL, kb=Size((128, 8, 128, 128), 64), kb_v0=VERSION0_2D),
)

DIVIDE_LEAKY_RELU = chain(
    "2_071",
    "Conv2d_Divide_LeakyReLU",
    divide_leaky_relu,
    sizes(conv, cpu=_SMALL, kb=Size((128, 8, 128, 128), 64), kb_v0=VERSION0_2D),
)

SUBTRACT_SUBTRACT_MISH = chain(
    "2_087",
    "Conv2d_Subtract_Subtract_Mish",
    subtract_subtract_mish,
    sizes(conv, cpu=_SMALL, kb=Size((128, 8, 256, 256), 64), kb_v0=VERSION0_2D),
)

ADD_MIN_GELU_MULTIPLY = chain(
    "2_093",
    "ConvTranspose2d_Add_Min_GELU_Multiply",
    add_min_gelu_multiply,
    sizes(
        conv_transpose,
        cpu=Size((3, 16, 25, 23), 9, kernel=4),
        kb=Size((128, 64, 64, 64), 128, kernel=4),
        kb_v0=Size((128, 32, 32, 32), 16, kernel=4),
    ),
    notes=(
        "Nearly degenerate at kb: an output differs from 0 only where the convolution is below -0.5, "
        "about four in a million.",
    ),
)
