"""Chains of a 2-D convolution, plain or transposed, and a batch or group norm, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import VERSION0_2D, Size, conv, conv_transpose, norm, per_channel, sizes


def batch_norm_tanh_max_group_norm(
    nn, x, conv_transpose_weight, conv_transpose_bias,
    batch_norm_weight, batch_norm_bias, group_norm_weight, group_norm_bias,
):  # fmt: skip
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=1, padding=1)
    x = nn.tanh(nn.batch_norm(x, batch_norm_weight, batch_norm_bias))
    return nn.group_norm(nn.max_pool2d(x, 2), 8, group_norm_weight, group_norm_bias)


def batch_norm_tanh_max_group_norm_v0(
    nn, x, conv_transpose_weight, conv_transpose_bias,
    batch_norm_weight, batch_norm_bias, group_norm_weight, group_norm_bias,
):  # fmt: skip
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    x = nn.tanh(nn.batch_norm(x, batch_norm_weight, batch_norm_bias))
    return nn.group_norm(nn.max_pool2d(x, 2), 4, group_norm_weight, group_norm_bias)


def gelu_group_norm(nn, x, conv_transpose_weight, conv_transpose_bias, group_norm_weight, group_norm_bias):
    x = nn.gelu(nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=1))
    return nn.group_norm(x, 8, group_norm_weight, group_norm_bias)


def gelu_group_norm_v0(nn, x, conv_transpose_weight, conv_transpose_bias, group_norm_weight, group_norm_bias):
    x = nn.gelu(nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2))
    return nn.group_norm(x, 8, group_norm_weight, group_norm_bias)


def add_scale_sigmoid_group_norm(nn, x, bias, scale, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    x = nn.sigmoid((x + bias) * scale)
    return nn.group_norm(x, 8, group_norm_weight, group_norm_bias)


def mish_batch_norm(nn, x, conv_weight, conv_bias, bn_weight, bn_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    x = nn.tanh(nn.softplus(x)) * x
    return nn.batch_norm(x, bn_weight, bn_bias)


def batch_norm_scale(nn, x, conv_weight, conv_bias, bn_weight, bn_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    return nn.batch_norm(x, bn_weight, bn_bias) * 2.0


def group_norm_scale_max_clamp(nn, x, scale, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    x = nn.group_norm(x, 16, group_norm_weight, group_norm_bias) * scale
    return nn.clamp(nn.max_pool2d(x, 4), min=0.0, max=1.0)


def group_norm_scale_max_clamp_v0(nn, x, scale, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    x = nn.group_norm(x, 8, group_norm_weight, group_norm_bias) * scale
    return nn.clamp(nn.max_pool2d(x, 2), min=0.0, max=1.0)


def group_norm_tanh_hardswish_residual_logsumexp(nn, x, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    y = nn.tanh(nn.group_norm(x, 16, group_norm_weight, group_norm_bias))
    return nn.logsumexp(x + nn.hardswish(y), dim=1, keepdim=True)


def group_norm_tanh_hardswish_residual_logsumexp_v0(nn, x, conv_weight, conv_bias, group_norm_weight, group_norm_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    y = nn.tanh(nn.group_norm(x, 8, group_norm_weight, group_norm_bias))
    return nn.logsumexp(x + nn.hardswish(y), dim=1, keepdim=True)


BATCH_NORM_TANH_MAX_GROUP_NORM = chain(
    "2_011",
    "ConvTranspose2d_BatchNorm_Tanh_MaxPool_GroupNorm",
    batch_norm_tanh_max_group_norm,
    sizes(
        conv_transpose,
        norm("batch_norm"),
        norm("group_norm"),
        cpu=Size((5, 6, 21, 19), 16, kernel=5),
        kb=Size((512, 64, 32, 32), 128, kernel=5),
        kb_v0=Size((128, 32, 32, 32), 64, kernel=4),
    ),
    version0=batch_norm_tanh_max_group_norm_v0,
)

GELU_GROUP_NORM = chain(
    "2_019",
    "ConvTranspose2d_GELU_GroupNorm",
    gelu_group_norm,
    sizes(
        conv_transpose,
        norm("group_norm"),
        cpu=Size((3, 10, 33, 29), 16),
        kb=Size((128, 64, 256, 256), 64),
        kb_v0=Size((128, 32, 32, 32), 64, kernel=4),
    ),
    version0=gelu_group_norm_v0,
)

ADD_SCALE_SIGMOID_GROUP_NORM = chain(
    "2_021",
    "Conv2d_Add_Scale_Sigmoid_GroupNorm",
    add_scale_sigmoid_group_norm,
    sizes(
        per_channel("bias", "scale"),
        conv,
        norm("group_norm"),
        cpu=Size((3, 5, 45, 41), 24),
        kb=Size((128, 8, 256, 256), 32),
        kb_v0=VERSION0_2D,
    ),
)

MISH_BATCH_NORM = chain(
    "2_052",
    "Conv2d_Activation_BatchNorm",
    mish_batch_norm,
    sizes(conv, norm("bn"), cpu=Size((3, 6, 45, 41), 18), kb=Size((64, 64, 128, 128), 128), kb_v0=VERSION0_2D),
)

BATCH_NORM_SCALE = chain(
    "2_073",
    "Conv2d_BatchNorm_Scaling",
    batch_norm_scale,
    sizes(conv, norm("bn"), cpu=Size((3, 6, 45, 41), 18), kb=Size((128, 8, 128, 128), 64), kb_v0=VERSION0_2D),
)

GROUP_NORM_SCALE_MAX_CLAMP = chain(
    "2_085",
    "Conv2d_GroupNorm_Scale_MaxPool_Clamp",
    group_norm_scale_max_clamp,
    sizes(
        per_channel("scale", init="constant(1)"),
        conv,
        norm("group_norm"),
        cpu=Size((3, 5, 45, 41), 48),
        kb=Size((128, 8, 128, 128), 64),
        kb_v0=VERSION0_2D,
    ),
    version0=group_norm_scale_max_clamp_v0,
)

GROUP_NORM_TANH_HARDSWISH_RESIDUAL_LOGSUMEXP = chain(
    "2_092",
    "Conv2d_GroupNorm_Tanh_HardSwish_ResidualAdd_LogSumExp",
    group_norm_tanh_hardswish_residual_logsumexp,
    sizes(conv, norm("group_norm"), cpu=Size((3, 5, 45, 41), 48), kb=Size((128, 8, 128, 128), 64), kb_v0=VERSION0_2D),
    version0=group_norm_tanh_hardswish_residual_logsumexp_v0,
)
