"""Chains of a linear layer and what folds its outputs, KernelBench level 2."""

from evaluator.tasks.linear_chain import linear_chain, per_output
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


def matmul_scale_residual_clamp_logsumexp_mish(nn, x, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias) * 2.0
    x = nn.clamp(x + x, min=-10.0, max=10.0)
    x = nn.logsumexp(x, dim=1, keepdim=True)
    return x * nn.mish(x)


def gemm_sigmoid_logsumexp(nn, x, linear1_weight, linear1_bias, linear2_weight, linear2_bias):
    x = nn.sigmoid(nn.linear(x, linear1_weight, linear1_bias))
    x = nn.linear(x, linear2_weight, linear2_bias)
    return nn.logsumexp(x, dim=1)


def gemm_sigmoid_sum_logsumexp(nn, x, linear1_weight, linear1_bias, linear2_weight, linear2_bias):
    x = nn.sigmoid(nn.linear(x, linear1_weight, linear1_bias))
    return nn.logsumexp(nn.sum(x, dim=1), dim=0)


def gemm_subtract_mean_logsumexp_gelu_residual(nn, x, subtract, gemm_weight, gemm_bias):
    y = nn.linear(x, gemm_weight, gemm_bias) - subtract
    y = nn.mean(y, dim=1, keepdim=True)
    y = nn.gelu(nn.logsumexp(y, dim=1, keepdim=True))
    return y + x


def matmul_max_pool_sum_scale(nn, x, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = nn.max_pool1d(x[:, None], 2)[:, 0]
    return nn.sum(x, dim=1) * 0.5


def matmul_sigmoid_sum(nn, x, linear_weight, linear_bias):
    x = nn.sigmoid(nn.linear(x, linear_weight, linear_bias))
    return nn.sum(x, dim=1, keepdim=True)


def gemm_logsumexp_leaky_relu_gelu(nn, x, linear_weight, linear_bias):
    x = nn.linear(x, linear_weight, linear_bias)
    x = nn.logsumexp(x, dim=1, keepdim=True)
    x = nn.leaky_relu(nn.leaky_relu(x, negative_slope=0.01), negative_slope=0.01)
    return nn.gelu(nn.gelu(x))


def gemm_max_subtract_gelu(nn, x, gemm_weight, gemm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.amax(x, dim=1, keepdim=True)
    return nn.gelu(x - nn.mean(x, dim=1, keepdim=True))


def matmul_avg_pool_gelu_scale_max(nn, x, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = nn.avg_pool1d(x[:, None], 16)[:, 0]
    return nn.amax(nn.gelu(x) * 2.0, dim=1)


def matmul_avg_pool_gelu_scale_max_v0(nn, x, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = nn.avg_pool1d(x[:, None], 4)[:, 0]
    return nn.amax(nn.gelu(x) * 2.0, dim=1)


def two_layers(inputs: int, hidden: int, outputs: int) -> tuple[Array, ...]:
    return layer("linear1", (hidden, inputs)) + layer("linear2", (outputs, hidden))


MATMUL_SCALE_RESIDUAL_CLAMP_LOGSUMEXP_MISH = linear_chain(
    "2_022",
    "Matmul_Scale_ResidualAdd_Clamp_LogSumExp_Mish",
    matmul_scale_residual_clamp_logsumexp_mish,
    "matmul",
    (128, 512, 1024),
    notes=("on the task's own draws the clamp changes nothing",),
)
GEMM_SIGMOID_LOGSUMEXP = Task(
    id="2_045",
    name="Gemm_Sigmoid_LogSumExp",
    family="chain",
    source=forward_text(gemm_sigmoid_logsumexp),
    sizes={
        "cpu": uniform(x=(100, 150)) + two_layers(150, 200, 90),
        "kb": uniform(x=(16384, 2048)) + two_layers(2048, 4096, 1024),
        "kb_v0": normal(x=(128, 10)) + two_layers(10, 20, 5),
    },
    sources_at={"kb_v0": forward_text(gemm_sigmoid_sum_logsumexp)},
    notes=("version 0 sums over the outputs of the first layer and never uses the second",),
)
GEMM_SUBTRACT_MEAN_LOGSUMEXP_GELU_RESIDUAL = linear_chain(
    "2_051",
    "Gemm_Subtract_GlobalAvgPool_LogSumExp_GELU_ResidualAdd",
    gemm_subtract_mean_logsumexp_gelu_residual,
    "gemm",
    (128, 1024, 512),
    kb=(2048, 8192, 8192),
    own=per_output("subtract"),
    collapses="the mean over the outputs is x @ (mean column of the weight) + a number, and the log of its one "
    "exponential is itself: a matrix-vector product",
)
MATMUL_MAX_POOL_SUM_SCALE = linear_chain(
    "2_055", "Matmul_MaxPool_Sum_Scale", matmul_max_pool_sum_scale, "matmul", (128, 10, 5), kb=(128, 32768, 32768)
)
MATMUL_SIGMOID_SUM = linear_chain(
    "2_056", "Matmul_Sigmoid_Sum", matmul_sigmoid_sum, "linear", (128, 10, 20), kb=(128, 32768, 32768)
)
GEMM_LOGSUMEXP_LEAKY_RELU_GELU = linear_chain(
    "2_064",
    "Gemm_LogSumExp_LeakyReLU_LeakyReLU_GELU_GELU",
    gemm_logsumexp_leaky_relu_gelu,
    "linear",
    (128, 1024, 512),
    notes=("at the values that the logarithm takes, leaky relu and gelu are nearly the identity",),
)
GEMM_MAX_SUBTRACT_GELU = linear_chain(
    "2_080",
    "Gemm_Max_Subtract_GELU",
    gemm_max_subtract_gelu,
    "gemm",
    (128, 512, 1024),
    degenerate="one column is left after the maximum, and its mean over that column is itself: all zeros",
)
MATMUL_AVG_POOL_GELU_SCALE_MAX = linear_chain(
    "2_098",
    "Matmul_AvgPool_GELU_Scale_Max",
    matmul_avg_pool_gelu_scale_max,
    "matmul",
    (128, 512, 256),
    cpu=(100, 250, 208),
    at_version0=matmul_avg_pool_gelu_scale_max_v0,
)
