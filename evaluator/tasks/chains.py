"""Chains of a matrix product and what follows it, KernelBench level 2."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import Array, Task


def gemm_multiply_leaky_relu(nn, x, gemm_weight, gemm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    return nn.leaky_relu(x * 2.0, negative_slope=0.1)


def gemm_divide_sum_scaling(nn, x, weight):
    x = nn.matmul(x, weight.T)
    x = x / 2
    x = nn.sum(x, dim=1, keepdim=True)
    return x * 1.5


def matmul_sum_max_mean_logsumexp(nn, x, linear_weight, linear_bias):
    x = nn.linear(x, linear_weight, linear_bias)
    x = nn.sum(x, dim=1, keepdim=True)
    x = nn.amax(x, dim=1, keepdim=True)
    x = nn.mean(x, dim=1, keepdim=True)
    x = nn.logsumexp(x, dim=1, keepdim=True)
    return nn.logsumexp(x, dim=1, keepdim=True)


def gemm_group_norm_hardtanh(nn, x, gemm_weight, gemm_bias, group_norm_weight, group_norm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.group_norm(x, 16, group_norm_weight, group_norm_bias)
    return nn.hardtanh(x, min_val=-2.0, max_val=2.0)


def gemm_group_norm_hardtanh_v0(nn, x, gemm_weight, gemm_bias, group_norm_weight, group_norm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.group_norm(x, 8, group_norm_weight, group_norm_bias)
    return nn.hardtanh(x, min_val=-2.0, max_val=2.0)


def gemm_relu_divide(nn, x, linear_weight, linear_bias):
    x = nn.relu(nn.linear(x, linear_weight, linear_bias))
    return x / 2.0


def gemm_add_relu(nn, x, bias, gemm_weight):
    return nn.relu(nn.linear(x, gemm_weight) + bias)


def matmul_divide_gelu(nn, x, linear_weight, linear_bias):
    x = nn.linear(x, linear_weight, linear_bias)
    return nn.gelu(x / 10.0)


def matmul_gelu_softmax(nn, x, linear_weight, linear_bias):
    x = nn.gelu(nn.linear(x, linear_weight, linear_bias))
    return nn.softmax(x, dim=1)


def linear_sizes(name: str, version0: tuple[int, int, int]) -> dict[str, tuple[Array, ...]]:
    """Sizes of a chain on one linear layer: the benchmark's own, and (rows, inputs, outputs) of version 0."""
    rows, inputs, outputs = version0
    return {
        "cpu": uniform(x=(100, 250)) + layer(name, (200, 250)),
        "kb": uniform(x=(1024, 8192)) + layer(name, (8192, 8192)),
        "kb_v0": normal(x=(rows, inputs)) + layer(name, (outputs, inputs)),
    }


GEMM_MULTIPLY_LEAKY_RELU = Task(
    id="2_012",
    name="Gemm_Multiply_LeakyReLU",
    family="chain",
    source=forward_text(gemm_multiply_leaky_relu),
    sizes=linear_sizes("gemm", (128, 1024, 512)),
)

GEMM_DIVIDE_SUM_SCALING = Task(
    id="2_014",
    name="Gemm_Divide_Sum_Scaling",
    family="chain",
    source=forward_text(gemm_divide_sum_scaling),
    sizes={
        "cpu": (*uniform(x=(100, 250)), parameter("weight", (200, 250), "normal(0,1)")),
        "kb": (*uniform(x=(1024, 8192)), parameter("weight", (8192, 8192), "normal(0,1)")),
        "kb_v0": (*normal(x=(128, 10)), parameter("weight", (20, 10), "normal(0,1)")),
    },
    collapses="the sum over columns of x @ weight.T is x @ (column sums of weight): a matrix-vector product",
)

MATMUL_SUM_MAX_MEAN_LOGSUMEXP = Task(
    id="2_018",
    name="Matmul_Sum_Max_AvgPool_LogSumExp_LogSumExp",
    family="chain",
    source=forward_text(matmul_sum_max_mean_logsumexp),
    sizes=linear_sizes("linear", (128, 10, 5)),
    collapses="one column is left after the sum, so what follows changes nothing: x @ (column sums) + sum of bias",
)

GEMM_GROUP_NORM_HARDTANH = Task(
    id="2_030",
    name="Gemm_GroupNorm_Hardtanh",
    family="chain",
    source=forward_text(gemm_group_norm_hardtanh),
    sizes={
        "cpu": uniform(x=(100, 250)) + layer("gemm", (208, 250)) + affine("group_norm", 208),
        "kb": uniform(x=(1024, 8192)) + layer("gemm", (8192, 8192)) + affine("group_norm", 8192),
        "kb_v0": normal(x=(128, 1024)) + layer("gemm", (512, 1024)) + affine("group_norm", 512),
    },
    sources_at={"kb_v0": forward_text(gemm_group_norm_hardtanh_v0)},
)

GEMM_RELU_DIVIDE = Task(
    id="2_063",
    name="Gemm_ReLU_Divide",
    family="chain",
    source=forward_text(gemm_relu_divide),
    sizes=linear_sizes("linear", (128, 1024, 512)),
)

GEMM_ADD_RELU = Task(
    id="2_076",
    name="Gemm_Add_ReLU",
    family="chain",
    source=forward_text(gemm_add_relu),
    sizes={
        "cpu": (
            *uniform(x=(100, 250)),
            parameter("bias", (200,), "normal(0,1)"),
            *layer("gemm", (200, 250), bias=False),
        ),
        "kb": (
            *uniform(x=(1024, 8192)),
            parameter("bias", (8192,), "normal(0,1)"),
            *layer("gemm", (8192, 8192), bias=False),
        ),
        "kb_v0": (
            *normal(x=(128, 1024)),
            parameter("bias", (512,), "normal(0,1)"),
            *layer("gemm", (512, 1024), bias=False),
        ),
    },
)

MATMUL_DIVIDE_GELU = Task(
    id="2_086",
    name="Matmul_Divide_GELU",
    family="chain",
    source=forward_text(matmul_divide_gelu),
    sizes=linear_sizes("linear", (128, 512, 1024)),
)

MATMUL_GELU_SOFTMAX = Task(
    id="2_099",
    name="Matmul_GELU_Softmax",
    family="chain",
    source=forward_text(matmul_gelu_softmax),
    sizes=linear_sizes("linear", (128, 100, 10)),
)
