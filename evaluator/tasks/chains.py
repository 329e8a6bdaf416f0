"""Chains of a matrix product and what follows it, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.linear_chain import linear_chain
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


def matmul_dropout_softmax(nn, x, kept, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = x * kept / (1 - 0.2)
    return nn.softmax(x, dim=1)


def matmul_dropout_mean_softmax(nn, x, kept, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    x = x * kept / (1 - 0.2)
    return nn.softmax(nn.mean(x, dim=1, keepdim=True), dim=1)


def with_dropout(drawn: tuple[Array, ...], outputs: int) -> tuple[Array, ...]:
    """Rows, which outputs of the layer dropout keeps (four in five), and the layer's arrays."""
    (x,) = drawn
    rows, inputs = x.shape
    kept = Array("kept", (rows, outputs), dtype="bool", init="integers(0,5)")
    return (x, kept, *layer("matmul", (outputs, inputs)))


GEMM_MULTIPLY_LEAKY_RELU = linear_chain(
    "2_012",
    "Gemm_Multiply_LeakyReLU",
    gemm_multiply_leaky_relu,
    "gemm",
    (128, 1024, 512),
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

MATMUL_SUM_MAX_MEAN_LOGSUMEXP = linear_chain(
    "2_018",
    "Matmul_Sum_Max_AvgPool_LogSumExp_LogSumExp",
    matmul_sum_max_mean_logsumexp,
    "linear",
    (128, 10, 5),
    collapses="one column is left after the sum, so what follows changes nothing: x @ (column sums) + sum of bias",
)

GEMM_GROUP_NORM_HARDTANH = linear_chain(
    "2_030",
    "Gemm_GroupNorm_Hardtanh",
    gemm_group_norm_hardtanh,
    "gemm",
    (128, 1024, 512),
    cpu=(100, 250, 208),
    norm="group_norm",
    at_version0=gemm_group_norm_hardtanh_v0,
)

GEMM_RELU_DIVIDE = linear_chain(
    "2_063",
    "Gemm_ReLU_Divide",
    gemm_relu_divide,
    "linear",
    (128, 1024, 512),
)

MATMUL_DROPOUT_SOFTMAX = chain(
    "2_066",
    "Matmul_Dropout_Softmax",
    matmul_dropout_softmax,
    {
        "cpu": with_dropout(uniform(x=(100, 250)), outputs=200),
        "kb": with_dropout(uniform(x=(128, 16384)), outputs=16384),
        "kb_v0": with_dropout(normal(x=(128, 100)), outputs=50),
    },
    version0=matmul_dropout_mean_softmax,
    precision="fp32",
    degenerate="at kb_v0 a mean leaves one column, and the softmax of one number is 1",
    degenerate_sizes=("kb_v0",),
    notes=(
        "The mask of dropout, which the benchmark draws inside its model, is an input; what is kept is divided by 0.8.",
    ),
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

MATMUL_DIVIDE_GELU = linear_chain(
    "2_086",
    "Matmul_Divide_GELU",
    matmul_divide_gelu,
    "linear",
    (128, 512, 1024),
)

MATMUL_GELU_SOFTMAX = linear_chain(
    "2_099",
    "Matmul_GELU_Softmax",
    matmul_gelu_softmax,
    "linear",
    (128, 100, 10),
)
