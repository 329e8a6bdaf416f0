"""Chains of a 3-D convolution, plain or transposed, and a norm, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import Size, conv, conv_transpose, norm, per_channel, single, sizes

TRAINING = "Training mode, which the benchmark never leaves: statistics are the batch's; running ones are no output."
OVER_WIDTH = "The layer norm is over the width, which is as long as there are channels, not over the channels."


def add_layer_norm_average_gelu(nn, x, sum_weight, conv_transpose_weight, conv_transpose_bias, norm_weight, norm_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = nn.layer_norm(x + sum_weight, norm_weight.shape, norm_weight, norm_bias, eps=1e-5)
    return nn.gelu(nn.avg_pool3d(x, 2))


def batch_norm_subtract_mean(nn, x, conv_transpose_weight, conv_transpose_bias, batch_norm_weight, batch_norm_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.batch_norm(x, batch_norm_weight, batch_norm_bias, eps=1e-5)
    return x - nn.mean(x, dim=(2, 3, 4), keepdim=True)


def group_norm_mean(nn, x, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.conv3d(x, conv_weight, conv_bias)
    x = nn.group_norm(x, 8, group_norm_weight, group_norm_bias, eps=1e-5)
    return nn.mean(x, dim=(1, 2, 3, 4))


def hardswish_group_norm_mean(nn, x, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.hardswish(nn.conv3d(x, conv_weight, conv_bias))
    x = nn.group_norm(x, 4, group_norm_weight, group_norm_bias, eps=1e-5)
    return nn.mean(x, dim=(2, 3, 4))


def hardswish_relu_softmax_mean_v0(nn, x, conv_weight, conv_bias):
    x = nn.hardswish(nn.conv3d(x, conv_weight, conv_bias))
    x = nn.softmax(nn.relu(x), dim=1)
    return nn.mean(x, dim=(2, 3, 4))


def layer_norm_gelu_scale(nn, x, conv_transpose_weight, conv_transpose_bias, layer_norm_weight, layer_norm_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.layer_norm(x, layer_norm_weight.shape, layer_norm_weight, layer_norm_bias, eps=1e-5)
    return nn.gelu(x) * 1.0


def swish_group_norm_hardswish(nn, x, conv_transpose_weight, conv_transpose_bias, group_norm_weight, group_norm_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.sigmoid(x) * x
    x = nn.group_norm(x, 4, group_norm_weight, group_norm_bias, eps=1e-5)
    return nn.hardswish(x)


def batch_norm_average_average(nn, x, conv_transpose_weight, conv_transpose_bias, batch_norm_weight, batch_norm_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.batch_norm(x, batch_norm_weight, batch_norm_bias, eps=1e-5)
    return nn.avg_pool3d(nn.avg_pool3d(x, 2), 2)


def scale_batch_norm_average(nn, x, conv_transpose_weight, conv_transpose_bias, batch_norm_weight, batch_norm_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias) * 2.0
    x = nn.batch_norm(x, batch_norm_weight, batch_norm_bias, eps=1e-5)
    return nn.adaptive_avg_pool3d(x, 1)


def multiply_instance_norm_clamp_multiply_max(nn, x, multiplier, conv_weight, conv_bias):
    x = nn.conv3d(x, conv_weight, conv_bias) * multiplier
    x = nn.clamp(nn.instance_norm(x, eps=1e-5), min=-1.0, max=1.0)
    return nn.amax(x * multiplier, dim=1)


ADD_LAYER_NORM_AVERAGE_GELU = chain(
    "2_003",
    "ConvTranspose3d_Sum_LayerNorm_AvgPool_GELU",
    add_layer_norm_average_gelu,
    sizes(
        single("sum_weight", init="constant(1)"),
        conv_transpose,
        norm("norm"),
        cpu=Size((2, 12, 5, 7, 13), channels=26),
        kb=Size((32, 32, 16, 32, 32), channels=64),
        kb_v0=Size((128, 32, 16, 32, 32), channels=64),
    ),
    notes=(OVER_WIDTH,),
)

BATCH_NORM_SUBTRACT_MEAN = chain(
    "2_015",
    "ConvTranspose3d_BatchNorm_Subtract",
    batch_norm_subtract_mean,
    sizes(
        conv_transpose,
        norm("batch_norm"),
        cpu=Size((3, 4, 6, 9, 11), channels=10),
        kb=Size((16, 16, 16, 32, 32), channels=32),
        kb_v0=Size((16, 16, 16, 32, 32), channels=32),
    ),
    notes=(TRAINING, "The subtracted mean takes the convolution's bias and the norm's with it."),
)

GROUP_NORM_MEAN = chain(
    "2_023",
    "Conv3d_GroupNorm_Mean",
    group_norm_mean,
    sizes(
        conv,
        norm("group_norm"),
        cpu=Size((5, 3, 9, 12, 15), channels=24),
        kb=Size((128, 3, 24, 32, 32), channels=24),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
    degenerate="each group has mean 0 after its norm, whose weights are 1 and biases 0, so every output is rounding",
)

HARDSWISH_GROUP_NORM_MEAN = chain(
    "2_027",
    "Conv3d_HardSwish_GroupNorm_Mean",
    hardswish_group_norm_mean,
    sizes(
        conv,
        norm("group_norm"),
        cpu=Size((5, 3, 8, 13, 15), channels=12, kernel=4),
        kb=Size((1024, 3, 16, 32, 32), channels=16, kernel=4),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
        parts_v0=(conv,),
    ),
    version0=hardswish_relu_softmax_mean_v0,
)

LAYER_NORM_GELU_SCALE = chain(
    "2_034",
    "ConvTranspose3d_LayerNorm_GELU_Scaling",
    layer_norm_gelu_scale,
    sizes(
        conv_transpose,
        norm("layer_norm"),
        cpu=Size((2, 5, 6, 9, 7), channels=14, kernel=4),
        kb=Size((32, 32, 16, 32, 32), channels=64, kernel=4),
        kb_v0=Size((128, 32, 16, 32, 32), channels=64, kernel=4),
    ),
    notes=(OVER_WIDTH, "The factor at the end is 1."),
)

SWISH_GROUP_NORM_HARDSWISH = chain(
    "2_060",
    "ConvTranspose3d_Swish_GroupNorm_HardSwish",
    swish_group_norm_hardswish,
    sizes(
        conv_transpose,
        norm("group_norm"),
        cpu=Size((3, 3, 6, 9, 11), channels=12),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)

BATCH_NORM_AVERAGE_AVERAGE = chain(
    "2_072",
    "ConvTranspose3d_BatchNorm_AvgPool_AvgPool",
    batch_norm_average_average,
    sizes(
        conv_transpose,
        norm("batch_norm"),
        cpu=Size((3, 3, 7, 9, 11), channels=10),
        kb=Size((64, 3, 32, 32, 32), channels=16),
        kb_v0=Size((128, 3, 32, 32, 32), channels=16),
    ),
    notes=(TRAINING, "Means over two windows of 2 are means over one window of 4."),
)

SCALE_BATCH_NORM_AVERAGE = chain(
    "2_077",
    "ConvTranspose3d_Scale_BatchNorm_GlobalAvgPool",
    scale_batch_norm_average,
    sizes(
        conv_transpose,
        norm("batch_norm"),
        cpu=Size((3, 4, 5, 8, 9), channels=9, kernel=5),
        kb=Size((16, 64, 16, 32, 32), channels=128, kernel=5),
        kb_v0=Size((16, 64, 16, 32, 32), channels=32),
    ),
    collapses="without padding the mean of the convolution is sums of x times sums of the weight; the batch's "
    "variance alone needs its outputs",
    notes=(TRAINING,),
)

MULTIPLY_INSTANCE_NORM_CLAMP_MULTIPLY_MAX = chain(
    "2_079",
    "Conv3d_Multiply_InstanceNorm_Clamp_Multiply_Max",
    multiply_instance_norm_clamp_multiply_max,
    sizes(
        per_channel("multiplier"),
        conv,
        cpu=Size((3, 3, 8, 13, 15), channels=12),
        kb=Size((128, 3, 16, 32, 32), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
    notes=("Of the first multiplier the norm leaves the sign, and through eps a little of the magnitude.",),
)
