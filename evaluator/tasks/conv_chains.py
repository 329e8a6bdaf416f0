"""Chains of a convolution and what follows it, KernelBench level 2."""

import functools

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import VERSION0_2D, Size, conv, conv_transpose, norm, per_channel, sizes


def conv_relu_bias(nn, x, bias, conv_weight, conv_bias):
    x = nn.relu(nn.conv2d(x, conv_weight, conv_bias))
    return x + bias


def conv_transposed_subtract_tanh(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    return nn.tanh(x - bias)


def conv_instance_norm_divide(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    return nn.instance_norm(x, eps=1e-5) / 2.0


def conv_multiply_leaky_relu_gelu(nn, x, multiplier, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias) * multiplier
    return nn.gelu(nn.leaky_relu(x, negative_slope=0.01))


def conv_transposed_relu_group_norm(nn, x, conv_transpose_weight, group_norm_weight, group_norm_bias):
    x = nn.relu(nn.conv_transpose3d(x, conv_transpose_weight))
    return nn.group_norm(x, 8, group_norm_weight, group_norm_bias, eps=1e-5)


def conv_group_norm_min_clamp_dropout(nn, x, conv_weight, conv_bias, norm_weight, norm_bias):
    x = nn.conv3d(x, conv_weight, conv_bias)
    x = nn.group_norm(x, 8, norm_weight, norm_bias)
    x = nn.clamp(nn.minimum(x, 0.0), min=0.0, max=1.0)
    return nn.dropout(x, p=0.2)


CONV_RELU_BIAS = chain(
    "2_001",
    "Conv2D_ReLU_BiasAdd",
    conv_relu_bias,
    sizes(
        per_channel("bias"),
        conv,
        cpu=Size((3, 6, 45, 45), 18),
        kb=Size((128, 64, 128, 128), 128),
        kb_v0=VERSION0_2D,
    ),
)

CONV_TRANSPOSED_SUBTRACT_TANH = chain(
    "2_005",
    "ConvTranspose2d_Subtract_Tanh",
    conv_transposed_subtract_tanh,
    sizes(
        per_channel("bias"),
        conv_transpose,
        cpu=Size((3, 10, 29, 29), 8, kernel=4),
        kb=Size((32, 64, 256, 256), 64, kernel=4),
        kb_v0=Size((128, 32, 16, 16), 16, kernel=4),
    ),
)

CONV_INSTANCE_NORM_DIVIDE = chain(
    "2_017",
    "Conv2d_InstanceNorm_Divide",
    conv_instance_norm_divide,
    sizes(conv, cpu=Size((3, 6, 45, 45), 18), kb=Size((128, 64, 128, 128), 128), kb_v0=VERSION0_2D),
)

CONV_MULTIPLY_LEAKY_RELU_GELU = chain(
    "2_054",
    "Conv2d_Multiply_LeakyReLU_GELU",
    conv_multiply_leaky_relu_gelu,
    sizes(
        per_channel("multiplier"),
        conv,
        cpu=Size((3, 6, 45, 45), 18),
        kb=Size((64, 64, 256, 256), 64),
        kb_v0=VERSION0_2D,
    ),
)

CONV_TRANSPOSED_RELU_GROUP_NORM = chain(
    "2_061",
    "ConvTranspose3d_ReLU_GroupNorm",
    conv_transposed_relu_group_norm,
    sizes(
        functools.partial(conv_transpose, bias=False),
        norm("group_norm"),
        cpu=Size((2, 5, 12, 14, 14), 8),
        kb=Size((16, 64, 32, 32, 32), 128),
        kb_v0=Size((16, 64, 8, 16, 16), 128),
    ),
)

CONV_GROUP_NORM_MIN_CLAMP_DROPOUT = chain(
    "2_083",
    "Conv3d_GroupNorm_Min_Clamp_Dropout",
    conv_group_norm_min_clamp_dropout,
    sizes(
        conv,
        norm("norm"),
        cpu=Size((2, 3, 10, 17, 17), 16),
        kb=Size((128, 3, 16, 64, 64), 16),
        kb_v0=Size((128, 3, 16, 32, 32), 16),
    ),
    degenerate="min(x, 0) held between 0 and 1 is 0 for every finite value, and dropout of zeros is zero",
)
