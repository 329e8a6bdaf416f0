"""Chains of a 2-D convolution, plain or transposed, and pooling, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import VERSION0_2D, Size, conv, conv_transpose, per_channel, sizes

_SMALL = Size((3, 6, 45, 41), 18)


def max_hardtanh_mean_tanh(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=1, padding=1)
    x = nn.hardtanh(nn.max_pool2d(x, 2), min_val=-1, max_val=1)
    return nn.tanh(nn.mean(x, dim=(2, 3), keepdim=True))


def max_hardtanh_mean_tanh_v0(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.hardtanh(nn.max_pool2d(x, 2), min_val=-1, max_val=1)
    return nn.tanh(nn.mean(x, dim=(2, 3), keepdim=True))


def subtract_hardswish_max_mish(nn, x, conv_weight, conv_bias):
    x = nn.hardswish(nn.conv2d(x, conv_weight, conv_bias) - 0.5)
    return nn.mish(nn.max_pool2d(x, 2))


def subtract_tanh_subtract_average(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    x = nn.tanh(x - 0.5) - 0.2
    return nn.avg_pool2d(x, 2)


def average_sigmoid_sum(nn, x, conv_weight, conv_bias):
    x = nn.avg_pool2d(nn.conv2d(x, conv_weight, conv_bias), 4)
    return nn.sum(nn.sigmoid(x), dim=(1, 2, 3))


def average_sigmoid_sum_v0(nn, x, conv_weight, conv_bias):
    x = nn.avg_pool2d(nn.conv2d(x, conv_weight, conv_bias), 2)
    return nn.sum(nn.sigmoid(x), dim=(1, 2, 3))


def gelu_global_average(nn, x, conv_weight, conv_bias):
    x = nn.gelu(nn.conv2d(x, conv_weight, conv_bias))
    x = nn.adaptive_avg_pool2d(x, 1)
    return nn.squeeze(nn.squeeze(x, -1), -1)


def tanh_scale_add_max(nn, x, bias, conv_weight, conv_bias):
    x = nn.tanh(nn.conv2d(x, conv_weight, conv_bias)) * 2.0
    return nn.max_pool2d(x + bias, 4)


def tanh_scale_add_max_v0(nn, x, bias, conv_weight, conv_bias):
    x = nn.tanh(nn.conv2d(x, conv_weight, conv_bias)) * 2.0
    return nn.max_pool2d(x + bias, 2)


MAX_HARDTANH_MEAN_TANH = chain(
    "2_010",
    "ConvTranspose2d_MaxPool_Hardtanh_Mean_Tanh",
    max_hardtanh_mean_tanh,
    sizes(
        conv_transpose,
        cpu=Size((5, 10, 37, 33), 18),
        kb=Size((128, 64, 256, 256), 64),
        kb_v0=Size((128, 32, 16, 16), 64, kernel=4),
    ),
    version0=max_hardtanh_mean_tanh_v0,
)

SUBTRACT_HARDSWISH_MAX_MISH = chain(
    "2_035",
    "Conv2d_Subtract_HardSwish_MaxPool_Mish",
    subtract_hardswish_max_mish,
    sizes(conv, cpu=_SMALL, kb=Size((128, 64, 128, 128), 128), kb_v0=VERSION0_2D),
)

SUBTRACT_TANH_SUBTRACT_AVERAGE = chain(
    "2_046",
    "Conv2d_Subtract_Tanh_Subtract_AvgPool",
    subtract_tanh_subtract_average,
    sizes(conv, cpu=_SMALL, kb=Size((128, 64, 128, 128), 128), kb_v0=VERSION0_2D),
)

AVERAGE_SIGMOID_SUM = chain(
    "2_065",
    "Conv2d_AvgPool_Sigmoid_Sum",
    average_sigmoid_sum,
    sizes(conv, cpu=_SMALL, kb=Size((128, 8, 384, 384), 64), kb_v0=VERSION0_2D),
    version0=average_sigmoid_sum_v0,
    notes=(
        "Insensitive: a sum of half a million sigmoids at kb hardly depends on the input, "
        "so that one number made of the weights alone agrees within 1e-4.",
    ),
)

GELU_GLOBAL_AVERAGE = chain(
    "2_067",
    "Conv2d_GELU_GlobalAvgPool",
    gelu_global_average,
    sizes(conv, cpu=_SMALL, kb=Size((128, 8, 256, 256), 64), kb_v0=VERSION0_2D),
)

TANH_SCALE_ADD_MAX = chain(
    "2_082",
    "Conv2d_Tanh_Scaling_BiasAdd_Max",
    tanh_scale_add_max,
    sizes(per_channel("bias"), conv, cpu=_SMALL, kb=Size((128, 8, 256, 256), 64), kb_v0=VERSION0_2D),
    version0=tanh_scale_add_max_v0,
)
