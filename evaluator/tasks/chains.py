"""Chains of operations, KernelBench level 2."""

from evaluator.tasks.notation import forward_text, normal, parameter, uniform
from evaluator.tasks.task import Task


def gemm_divide_sum_scaling(nn, x, weight):
    x = nn.matmul(x, weight.T)
    x = x / 2
    x = nn.sum(x, dim=1, keepdim=True)
    return x * 1.5


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
