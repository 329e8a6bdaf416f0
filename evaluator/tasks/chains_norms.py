"""Chains of a linear layer and a norm, KernelBench level 2."""

from evaluator.tasks.linear_chain import linear_chain, per_output, single
from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import Task


def bmm_instance_norm_sum_residual_multiply(nn, x, y, bmm_weight, bmm_bias):
    x = nn.linear(x, bmm_weight, bmm_bias)
    x = nn.instance_norm(x[:, None, None, :], eps=1e-5)[:, 0, 0]
    return (x + y) * y


def gemm_scale_batch_norm(nn, x, scale, gemm_weight, gemm_bias, bn_weight, bn_bias):
    x = nn.linear(x, gemm_weight, gemm_bias) * scale
    return nn.batch_norm(x, bn_weight, bn_bias, eps=1e-5)


def matmul_swish_sum_group_norm(nn, x, bias, matmul_weight, matmul_bias, group_norm_weight, group_norm_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = nn.sigmoid(x) * x + bias
    return nn.group_norm(x, 64, group_norm_weight, group_norm_bias)


def matmul_swish_sum_group_norm_v0(nn, x, bias, matmul_weight, matmul_bias, group_norm_weight, group_norm_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = nn.sigmoid(x) * x + bias
    return nn.group_norm(x, 32, group_norm_weight, group_norm_bias)


def gemm_batch_norm_gelu_relu(nn, x, gemm_weight, gemm_bias, batch_norm_weight, batch_norm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.batch_norm(x, batch_norm_weight, batch_norm_bias, eps=1e-5)
    return nn.relu(nn.gelu(x))


def gemm_batch_norm_gelu_group_norm_mean_relu(
    nn, x, gemm_weight, gemm_bias, batch_norm_weight, batch_norm_bias, group_norm_weight, group_norm_bias
):  # fmt: skip
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.gelu(nn.batch_norm(x, batch_norm_weight, batch_norm_bias, eps=1e-5))
    x = nn.group_norm(x, 8, group_norm_weight, group_norm_bias)
    return nn.relu(nn.mean(x, dim=1, keepdim=True))


def matmul_group_norm_leaky_relu_sum(nn, x, fc_weight, fc_bias, gn_weight, gn_bias):
    x = nn.group_norm(nn.linear(x, fc_weight, fc_bias), 512, gn_weight, gn_bias, eps=1e-5)
    x = nn.leaky_relu(x, negative_slope=0.01)
    return x + x


def matmul_group_norm_leaky_relu_sum_v0(nn, x, fc_weight, fc_bias, gn_weight, gn_bias):
    x = nn.group_norm(nn.linear(x, fc_weight, fc_bias), 8, gn_weight, gn_bias, eps=1e-5)
    x = nn.leaky_relu(x, negative_slope=0.01)
    return x + x


def gemm_group_norm_min_bias(nn, x, bias, gemm_weight, gemm_bias, group_norm_weight, group_norm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.group_norm(x, 512, group_norm_weight, group_norm_bias)
    return nn.amin(x, dim=1, keepdim=True) + bias


def gemm_group_norm_min_bias_v0(nn, x, bias, gemm_weight, gemm_bias, group_norm_weight, group_norm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.group_norm(x, 8, group_norm_weight, group_norm_bias)
    return nn.amin(x, dim=1, keepdim=True) + bias


def gemm_batch_norm_scaling_softmax(nn, x, scale, gemm_weight, gemm_bias, bn_weight, bn_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.batch_norm(x, bn_weight, bn_bias, eps=1e-5)
    return nn.softmax(scale * x, dim=1)


def gemm_group_norm_swish_multiply_swish(
    nn, x, multiply_weight, gemm_weight, gemm_bias, group_norm_weight, group_norm_bias
):  # fmt: skip
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.group_norm(x, 256, group_norm_weight, group_norm_bias)
    x = x * nn.sigmoid(x) * multiply_weight
    return x * nn.sigmoid(x)


def gemm_group_norm_swish_multiply_swish_v0(
    nn, x, multiply_weight, gemm_weight, gemm_bias, group_norm_weight, group_norm_bias
):  # fmt: skip
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.group_norm(x, 16, group_norm_weight, group_norm_bias)
    x = x * nn.sigmoid(x) * multiply_weight
    return x * nn.sigmoid(x)


def gemm_bias_hardtanh_mish_group_norm(nn, x, bias, gemm_weight, gemm_bias, groupnorm_weight, groupnorm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias) + bias
    x = nn.mish(nn.hardtanh(x))
    return nn.group_norm(x, 256, groupnorm_weight, groupnorm_bias)


def gemm_bias_hardtanh_mish_group_norm_v0(nn, x, bias, gemm_weight, gemm_bias, groupnorm_weight, groupnorm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias) + bias
    x = nn.mish(nn.hardtanh(x))
    return nn.group_norm(x, 32, groupnorm_weight, groupnorm_bias)


def matmul_batch_norm_bias_divide_swish(nn, x, bias, matmul_weight, matmul_bias, bn_weight, bn_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = (nn.batch_norm(x, bn_weight, bn_bias, eps=1e-5) + bias) / 1.0
    return x * nn.sigmoid(x)


BMM_INSTANCE_NORM_SUM_RESIDUAL_MULTIPLY = Task(
    id="2_028",
    name="BMM_InstanceNorm_Sum_ResidualAdd_Multiply",
    family="chain",
    source=forward_text(bmm_instance_norm_sum_residual_multiply),
    sizes={
        "cpu": uniform(x=(100, 250), y=(100, 200)) + layer("bmm", (200, 250)),
        "kb": uniform(x=(1024, 8192), y=(1024, 8192)) + layer("bmm", (8192, 8192)),
        "kb_v0": normal(x=(128, 64), y=(128, 128)) + layer("bmm", (128, 64)),
    },
    notes=("each row is one image of one channel: its own mean and variance",),
)
GEMM_SCALE_BATCH_NORM = linear_chain(
    "2_033", "Gemm_Scale_BatchNorm", gemm_scale_batch_norm, "gemm", (128, 1024, 512), own=per_output("scale"), norm="bn"
)
MATMUL_SWISH_SUM_GROUP_NORM = linear_chain(
    "2_037",
    "Matmul_Swish_Sum_GroupNorm",
    matmul_swish_sum_group_norm,
    "matmul",
    (128, 512, 1024),
    kb=(32768, 1024, 4096),
    cpu=(100, 150, 320),
    own=per_output("bias"),
    norm="group_norm",
    at_version0=matmul_swish_sum_group_norm_v0,
)
GEMM_SCALE_BATCH_NORM_WIDE = linear_chain(
    "2_039",
    "Gemm_Scale_BatchNorm",
    gemm_scale_batch_norm,
    "gemm",
    (128, 1024, 512),
    kb=(16384, 4096, 4096),
    own=per_output("scale"),
    norm="bn",
)
GEMM_BATCH_NORM_GELU_RELU = Task(
    id="2_041",
    name="Gemm_BatchNorm_GELU_ReLU",
    family="chain",
    source=forward_text(gemm_batch_norm_gelu_relu),
    sizes={
        "cpu": uniform(x=(100, 250)) + layer("gemm", (200, 250)) + affine("batch_norm", 200),
        "kb": uniform(x=(16384, 4096)) + layer("gemm", (4096, 4096)) + affine("batch_norm", 4096),
        "kb_v0": normal(x=(128, 512))
        + layer("gemm", (1024, 512))
        + affine("batch_norm", 1024)
        + affine("group_norm", 1024),
    },
    sources_at={"kb_v0": forward_text(gemm_batch_norm_gelu_group_norm_mean_relu)},
)
MATMUL_GROUP_NORM_LEAKY_RELU_SUM = linear_chain(
    "2_062",
    "Matmul_GroupNorm_LeakyReLU_Sum",
    matmul_group_norm_leaky_relu_sum,
    "fc",
    (128, 512, 256),
    cpu=(50, 100, 2560),
    norm="gn",
    at_version0=matmul_group_norm_leaky_relu_sum_v0,
)
GEMM_GROUP_NORM_MIN_BIAS = linear_chain(
    "2_075",
    "Gemm_GroupNorm_Min_BiasAdd",
    gemm_group_norm_min_bias,
    "gemm",
    (128, 512, 256),
    cpu=(50, 100, 2560),
    own=lambda outputs: (parameter("bias", (1, outputs, 1, 1), "normal(0,1)"),),
    norm="group_norm",
    at_version0=gemm_group_norm_min_bias_v0,
    notes=("a minimum for each row and a bias for each output give the sum of every pair",),
)
GEMM_BATCH_NORM_SCALING_SOFTMAX = linear_chain(
    "2_084",
    "Gemm_BatchNorm_Scaling_Softmax",
    gemm_batch_norm_scaling_softmax,
    "gemm",
    (128, 1024, 512),
    own=single("scale", "constant(1)"),
    norm="bn",
)
GEMM_GROUP_NORM_SWISH_MULTIPLY_SWISH = linear_chain(
    "2_088",
    "Gemm_GroupNorm_Swish_Multiply_Swish",
    gemm_group_norm_swish_multiply_swish,
    "gemm",
    (128, 512, 1024),
    cpu=(50, 100, 1280),
    own=per_output("multiply_weight"),
    norm="group_norm",
    at_version0=gemm_group_norm_swish_multiply_swish_v0,
)
GEMM_BIAS_HARDTANH_MISH_GROUP_NORM = linear_chain(
    "2_094",
    "Gemm_BiasAdd_Hardtanh_Mish_GroupNorm",
    gemm_bias_hardtanh_mish_group_norm,
    "gemm",
    (128, 512, 1024),
    cpu=(50, 100, 2560),
    own=per_output("bias"),
    norm="groupnorm",
    at_version0=gemm_bias_hardtanh_mish_group_norm_v0,
)
MATMUL_BATCH_NORM_BIAS_DIVIDE_SWISH = linear_chain(
    "2_097",
    "Matmul_BatchNorm_BiasAdd_Divide_Swish",
    matmul_batch_norm_bias_divide_swish,
    "matmul",
    (128, 1024, 512),
    own=single("bias", "normal(0,1)"),
    norm="bn",
    notes=("the division is by 1",),
)
