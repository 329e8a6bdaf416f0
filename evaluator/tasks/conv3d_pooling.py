"""Chains of a 3-D convolution, plain or transposed, and pooling, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import Size, conv, conv_transpose, per_channel, single, sizes


def divide_max_average_add_sum(nn, x, bias, conv_weight, conv_bias):
    x = nn.conv3d(x, conv_weight, conv_bias) / 2.0
    x = nn.adaptive_avg_pool3d(nn.max_pool3d(x, 2), 1)
    return nn.sum(x + bias, dim=1)


def scale_average_add_scale(nn, x, scale1, bias, scale2, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.avg_pool3d(x * scale1, 2)
    return (x + bias) * scale2


def leaky_relu_multiply_max(nn, x, multiplier, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.leaky_relu(x, negative_slope=0.2) * multiplier
    x = nn.leaky_relu(x, negative_slope=0.2)
    return nn.max_pool3d(x, 2)


def max_max_sum(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=2)
    x = nn.max_pool3d(nn.max_pool3d(x, 2), 3)
    return nn.sum(x, dim=1, keepdim=True)


def max_max_sum_v0(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.max_pool3d(nn.max_pool3d(x, 2), 3)
    return nn.sum(x, dim=1, keepdim=True)


def multiply_max_average_clamp(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.max_pool3d(x * 0.5, 2)
    return nn.clamp(nn.adaptive_avg_pool3d(x, 1), min=0.0, max=1.0)


DIVIDE_MAX_AVERAGE_ADD_SUM = chain(
    "2_008",
    "Conv3d_Divide_Max_GlobalAvgPool_BiasAdd_Sum",
    divide_max_average_add_sum,
    sizes(
        per_channel("bias"),
        conv,
        cpu=Size((5, 4, 9, 14, 17), channels=9),
        kb=Size((128, 8, 16, 64, 64), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)

SCALE_AVERAGE_ADD_SCALE = chain(
    "2_050",
    "ConvTranspose3d_Scaling_AvgPool_BiasAdd_Scaling",
    scale_average_add_scale,
    sizes(
        single("scale1", init="constant(0.5)"),
        per_channel("bias"),
        single("scale2", init="constant(1)"),
        conv_transpose,
        cpu=Size((3, 3, 6, 9, 11), channels=10),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
    collapses="the mean over windows of a transposed convolution is a convolution of x, an eighth of the outputs",
)

LEAKY_RELU_MULTIPLY_MAX = chain(
    "2_074",
    "ConvTranspose3d_LeakyReLU_Multiply_LeakyReLU_Max",
    leaky_relu_multiply_max,
    sizes(
        per_channel("multiplier"),
        conv_transpose,
        cpu=Size((2, 5, 6, 9, 11), channels=10),
        kb=Size((16, 16, 16, 32, 32), channels=32),
        kb_v0=Size((16, 16, 16, 32, 32), channels=32),
    ),
)

MAX_MAX_SUM = chain(
    "2_078",
    "ConvTranspose3d_Max_Max_Sum",
    max_max_sum,
    sizes(
        conv_transpose,
        cpu=Size((2, 4, 9, 10, 11), channels=10, kernel=5),
        kb=Size((16, 32, 32, 32, 32), channels=64, kernel=5),
        kb_v0=Size((16, 8, 16, 32, 32), channels=16),
    ),
    version0=max_max_sum_v0,
    notes=("Maxima over windows of 2, then of 3, are maxima over windows of 6.",),
)

MULTIPLY_MAX_AVERAGE_CLAMP = chain(
    "2_096",
    "ConvTranspose3d_Multiply_Max_GlobalAvgPool_Clamp",
    multiply_max_average_clamp,
    sizes(
        conv_transpose,
        cpu=Size((5, 3, 6, 9, 11), channels=10),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)
