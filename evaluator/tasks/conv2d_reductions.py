"""Chains of a 2-D convolution, plain or transposed, and a reduction or softmax, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import VERSION0_2D, Size, conv, conv_transpose, per_channel, single, sizes

_SMALL = Size((3, 6, 45, 41), 18)
_SMALL_TRANSPOSED = Size((3, 10, 29, 27), 18)


def min_tanh_tanh(nn, x, conv_weight, conv_bias):
    x = nn.amin(nn.conv2d(x, conv_weight, conv_bias), dim=1, keepdim=True)
    return nn.tanh(nn.tanh(x))


def scale_min(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias) * 2.0
    return nn.amin(x, dim=1, keepdim=True)


def min_sum_gelu_add(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.amin(x, dim=1, keepdim=True)
    return nn.gelu(nn.sum(x, dim=2, keepdim=True)) + bias


def mean_add_logsumexp_sum_multiply(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias)
    x = nn.mean(x, dim=(2, 3), keepdim=True) + bias
    x = nn.logsumexp(x, dim=1, keepdim=True)
    return nn.sum(x, dim=(2, 3)) * 10.0


def multiply_mean_mean(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.mean(x * 0.5, dim=(2, 3), keepdim=True)
    return nn.mean(x, dim=(2, 3), keepdim=True)


def softmax_add_scale_sigmoid(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.softmax(x, dim=1)
    return nn.sigmoid((x + bias) * 2.0)


MIN_TANH_TANH = chain(
    "2_025",
    "Conv2d_Min_Tanh_Tanh",
    min_tanh_tanh,
    sizes(conv, cpu=_SMALL, kb=Size((128, 16, 256, 256), 64), kb_v0=VERSION0_2D),
)

SCALE_MIN = chain(
    "2_032",
    "Conv2d_Scaling_Min",
    scale_min,
    sizes(conv, cpu=_SMALL, kb=Size((64, 64, 256, 256), 128), kb_v0=VERSION0_2D),
)

MIN_SUM_GELU_ADD = chain(
    "2_036",
    "ConvTranspose2d_Min_Sum_GELU_Add",
    min_sum_gelu_add,
    sizes(
        single("bias", (1, 1, 1)),
        conv_transpose,
        cpu=_SMALL_TRANSPOSED,
        kb=Size((16, 64, 128, 128), 128),
        kb_v0=VERSION0_2D,
        parts_v0=(per_channel("bias"), conv_transpose),
    ),
    degenerate="the sum over rows of the smallest channel is far below zero, where gelu is zero: the bias is left",
)

MEAN_ADD_LOGSUMEXP_SUM_MULTIPLY = chain(
    "2_042",
    "ConvTranspose2d_GlobalAvgPool_BiasAdd_LogSumExp_Sum_Multiply",
    mean_add_logsumexp_sum_multiply,
    sizes(
        per_channel("bias"),
        conv_transpose,
        cpu=_SMALL_TRANSPOSED,
        kb=Size((16, 64, 512, 512), 128),
        kb_v0=VERSION0_2D,
    ),
    collapses="the mean over all positions of a transposed convolution is a product of channel sums and summed weights",
    notes=(
        "Insensitive: means over 512 x 512 positions hardly depend on the input at kb, "
        "so that one number made of the weights alone agrees within 1e-4.",
    ),
)

MULTIPLY_MEAN_MEAN = chain(
    "2_044",
    "ConvTranspose2d_Multiply_GlobalAvgPool_GlobalAvgPool_Mean",
    multiply_mean_mean,
    sizes(conv_transpose, cpu=_SMALL_TRANSPOSED, kb=Size((16, 64, 128, 128), 128), kb_v0=VERSION0_2D),
    collapses="the mean over all positions is a small product of sums over each input channel, whole and less an edge",
)

SOFTMAX_ADD_SCALE_SIGMOID = chain(
    "2_091",
    "ConvTranspose2d_Softmax_BiasAdd_Scaling_Sigmoid",
    softmax_add_scale_sigmoid,
    sizes(
        per_channel("bias"),
        conv_transpose,
        cpu=Size((3, 10, 25, 23), 18, kernel=4),
        kb=Size((128, 64, 64, 64), 128, kernel=4),
        kb_v0=Size((128, 32, 16, 16), 64, kernel=4),
    ),
)
