"""Chains of a 3-D convolution, plain or transposed, and a softmax or logsumexp, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import Size, conv, conv_transpose, per_channel, single, sizes
from evaluator.tasks.notation import parameter
from evaluator.tasks.task import Array


def softmax_max_max(nn, x, conv_weight, conv_bias):
    x = nn.softmax(nn.conv3d(x, conv_weight, conv_bias), dim=1)
    return nn.max_pool3d(nn.max_pool3d(x, 2), 2)


def mean_add_softmax_tanh(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=1, padding=1)
    x = nn.mean(x, dim=2, keepdim=True) + bias
    return nn.tanh(nn.softmax(x, dim=1)) * 2.0


def mean_add_softmax_tanh_v0(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.mean(x, dim=1, keepdim=True) + bias
    return nn.tanh(nn.softmax(x, dim=1)) * 2.0


def min_softmax(nn, x, conv_weight, conv_bias):
    x = nn.amin(nn.conv3d(x, conv_weight, conv_bias), dim=2)
    return nn.softmax(x, dim=1)


def average_clamp_softmax_multiply(nn, x, scale, conv_transpose_weight, conv_transpose_bias):
    x = nn.avg_pool3d(x, 2)
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.clamp(x, min=0.0, max=1.0)
    shares = nn.softmax(nn.flatten(x, 2), dim=2)
    return nn.reshape(shares, x.shape) * scale


def average_clamp_softmax_multiply_v0(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.clamp(nn.avg_pool3d(x, 2), min=0.0, max=1.0)
    return nn.softmax(x, dim=1) * 2.0


def max_logsumexp_relu(nn, x, conv_weight, conv_bias):
    x = nn.max_pool3d(nn.conv3d(x, conv_weight, conv_bias, stride=1, padding=1), 2)
    return nn.relu(nn.logsumexp(x, dim=1, keepdim=True))


def softmax_sigmoid(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    return nn.sigmoid(nn.softmax(x, dim=1))


def logsumexp_gate_subtract_clamp(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.logsumexp(x, dim=1, keepdim=True)
    x = x * nn.sigmoid(x + 3.0) / 6.0
    return nn.clamp(x - bias, min=-1.0, max=1.0)


def logsumexp_gate_subtract_clamp_v0(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.logsumexp(x, dim=1, keepdim=True)
    x = x * nn.sigmoid(x + 3.0) / 6.0
    x = nn.clamp(x - bias, min=-1.0, max=1.0)
    return nn.amax(x, dim=1, keepdim=True)


def max_softmax_subtract_swish_max(nn, x, subtract, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.softmax(nn.max_pool3d(x, 2, stride=2, padding=0), dim=1)
    x = x - nn.reshape(subtract, (1, -1, 1, 1, 1))
    return nn.amax(nn.sigmoid(x) * x, dim=1)


def bias_of_channels(size: Size) -> tuple[Array, ...]:
    return (parameter("bias", (1, size.channels, 1, 1, 1), "normal(0,1)"),)


def scale_of_channels(size: Size) -> tuple[Array, ...]:
    return (parameter("scale", (1, size.channels, 1, 1, 1), "constant(1)"),)


def subtracted(size: Size) -> tuple[Array, ...]:
    return (parameter("subtract", (size.channels,), "normal(0,1)"),)


SOFTMAX_MAX_MAX = chain(
    "2_006",
    "Conv3d_Softmax_MaxPool_MaxPool",
    softmax_max_max,
    sizes(
        conv,
        cpu=Size((3, 3, 12, 15, 19), channels=10),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
    notes=("Maxima over two windows of 2 are maxima over one window of 4.",),
)

MEAN_ADD_SOFTMAX_TANH = chain(
    "2_013",
    "ConvTranspose3d_Mean_Add_Softmax_Tanh_Scaling",
    mean_add_softmax_tanh,
    sizes(
        bias_of_channels,
        conv_transpose,
        cpu=Size((3, 4, 7, 15, 18), channels=10),
        kb=Size((16, 16, 32, 128, 128), channels=64),
        kb_v0=Size((16, 8, 16, 32, 32), channels=16),
        parts_v0=(single("bias", (1, 1, 1, 1, 1)), conv_transpose),
    ),
    version0=mean_add_softmax_tanh_v0,
    collapses="the mean over depth of a transposed convolution is a 2-D convolution of sums over depth of x",
    notes=("At kb_v0 the softmax is over the one channel that the mean leaves: every output is 2 tanh(1).",),
)

MIN_SOFTMAX = chain(
    "2_024",
    "Conv3d_Min_Softmax",
    min_softmax,
    sizes(
        conv,
        cpu=Size((3, 3, 11, 15, 18), channels=12),
        kb=Size((128, 3, 24, 32, 32), channels=24),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)

AVERAGE_CLAMP_SOFTMAX_MULTIPLY = chain(
    "2_038",
    "ConvTranspose3d_AvgPool_Clamp_Softmax_Multiply",
    average_clamp_softmax_multiply,
    sizes(
        scale_of_channels,
        conv_transpose,
        cpu=Size((2, 5, 9, 14, 17), channels=10),
        kb=Size((32, 32, 32, 64, 64), channels=64),
        kb_v0=Size((16, 8, 16, 32, 32), channels=16),
        parts_v0=(conv_transpose,),
    ),
    version0=average_clamp_softmax_multiply_v0,
    degenerate="at kb a softmax is over 131,072 positions, so outputs are about 7.6e-6 and zeros pass at 1e-4",
    degenerate_sizes=("kb",),
    notes=("At kb_v0 the softmax is over 16 channels, and its outputs are no longer small.",),
)

MAX_LOGSUMEXP_RELU = chain(
    "2_043",
    "Conv3d_Max_LogSumExp_ReLU",
    max_logsumexp_relu,
    sizes(
        conv,
        cpu=Size((2, 5, 8, 14, 17), channels=12),
        kb=Size((4, 32, 32, 128, 128), channels=64),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
    notes=("At the benchmark's inputs every logsumexp is positive, so relu changes none.",),
)

SOFTMAX_SIGMOID = chain(
    "2_049",
    "ConvTranspose3d_Softmax_Sigmoid",
    softmax_sigmoid,
    sizes(
        conv_transpose,
        cpu=Size((2, 5, 6, 9, 11), channels=10),
        kb=Size((16, 32, 16, 32, 32), channels=64),
        kb_v0=Size((16, 32, 16, 32, 32), channels=64),
    ),
)

LOGSUMEXP_GATE_SUBTRACT_CLAMP = chain(
    "2_058",
    "ConvTranspose3d_LogSumExp_HardSwish_Subtract_Clamp",
    logsumexp_gate_subtract_clamp,
    sizes(
        single("bias", (1, 1, 1, 1)),
        conv_transpose,
        cpu=Size((3, 3, 6, 9, 11), channels=10),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
        parts_v0=(per_channel("bias"), conv_transpose),
    ),
    version0=logsumexp_gate_subtract_clamp_v0,
    notes=("The gate is a sigmoid, though the name says HardSwish.",),
)

MAX_SOFTMAX_SUBTRACT_SWISH_MAX = chain(
    "2_089",
    "ConvTranspose3d_MaxPool_Softmax_Subtract_Swish_Max",
    max_softmax_subtract_swish_max,
    sizes(
        subtracted,
        conv_transpose,
        cpu=Size((3, 3, 6, 9, 11), channels=10),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)
