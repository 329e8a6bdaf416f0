"""Chains of a 2-D convolution, plain or transposed, and a reduction or softmax, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv2d_sizes import VERSION0, Image, Weights, sizes
from evaluator.tasks.notation import parameter, uniform
from evaluator.tasks.task import Array

_SMALL = Image((3, 6, 45, 41), 18)
_SMALL_TRANSPOSED = Image((3, 10, 29, 27), 18)
_TRANSPOSED, _TRANSPOSED_WITH_BIAS = Weights(transposed=True), Weights(own=("bias",), transposed=True)


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


def with_one_bias(image: Image) -> tuple[Array, ...]:
    """Arrays of 2_036, whose bias is a single number in the benchmark's present version."""
    return (*uniform(x=image.x), parameter("bias", (1, 1, 1), "normal(0,1)"), *_TRANSPOSED.arrays(image))


MIN_TANH_TANH = chain(
    "2_025",
    "Conv2d_Min_Tanh_Tanh",
    min_tanh_tanh,
    sizes(Weights(), cpu=_SMALL, kb=Image((128, 16, 256, 256), 64)),
)

SCALE_MIN = chain(
    "2_032",
    "Conv2d_Scaling_Min",
    scale_min,
    sizes(Weights(), cpu=_SMALL, kb=Image((64, 64, 256, 256), 128)),
)

MIN_SUM_GELU_ADD = chain(
    "2_036",
    "ConvTranspose2d_Min_Sum_GELU_Add",
    min_sum_gelu_add,
    {
        **sizes(_TRANSPOSED_WITH_BIAS, cpu=_SMALL_TRANSPOSED, kb=_SMALL_TRANSPOSED, kb_v0=VERSION0),
        "cpu": with_one_bias(_SMALL_TRANSPOSED),
        "kb": with_one_bias(Image((16, 64, 128, 128), 128)),
    },
    degenerate="the sum over rows of the smallest channel is far below zero, where gelu is zero: the bias is left",
)

MEAN_ADD_LOGSUMEXP_SUM_MULTIPLY = chain(
    "2_042",
    "ConvTranspose2d_GlobalAvgPool_BiasAdd_LogSumExp_Sum_Multiply",
    mean_add_logsumexp_sum_multiply,
    sizes(_TRANSPOSED_WITH_BIAS, cpu=_SMALL_TRANSPOSED, kb=Image((16, 64, 512, 512), 128)),
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
    sizes(_TRANSPOSED, cpu=_SMALL_TRANSPOSED, kb=Image((16, 64, 128, 128), 128)),
    collapses="the mean over all positions is a small product of sums over each input channel, whole and less an edge",
)

SOFTMAX_ADD_SCALE_SIGMOID = chain(
    "2_091",
    "ConvTranspose2d_Softmax_BiasAdd_Scaling_Sigmoid",
    softmax_add_scale_sigmoid,
    sizes(
        _TRANSPOSED_WITH_BIAS,
        cpu=Image((3, 10, 25, 23), 18, kernel=4),
        kb=Image((128, 64, 64, 64), 128, kernel=4),
        kb_v0=Image((128, 32, 16, 16), 64, kernel=4),
    ),
)
