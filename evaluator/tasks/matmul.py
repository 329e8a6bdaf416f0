"""Matrix products of KernelBench level 1, and scaling by a diagonal matrix."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Task


def product(nn, A, B):
    return nn.matmul(A, B)


def batched_product(nn, A, B):
    return nn.bmm(A, B)


def row_scaling(nn, A, B):
    return nn.unsqueeze(A, 1) * B


def diagonal_product(nn, A, B):
    return nn.matmul(nn.diag(A), B)


SQUARE = Task(
    id="1_001",
    name="Square_matrix_multiplication",
    family="matmul",
    source=forward_text(product),
    sizes={
        "cpu": uniform(A=(200, 200), B=(200, 200)),
        "kb": uniform(A=(4096, 4096), B=(4096, 4096)),
        "kb_v0": normal(A=(2048, 2048), B=(2048, 2048)),
    },
)

RECTANGULAR = Task(
    id="1_002",
    name="Standard_matrix_multiplication",
    family="matmul",
    source=forward_text(product),
    sizes={
        "cpu": uniform(A=(100, 320), B=(320, 200)),
        "kb": uniform(A=(2048, 8192), B=(8192, 4096)),
        "kb_v0": normal(A=(1024, 4096), B=(4096, 2048)),
    },
)

BATCHED = Task(
    id="1_003",
    name="Batched_matrix_multiplication",
    family="matmul",
    source=forward_text(batched_product),
    sizes={
        "cpu": uniform(A=(12, 50, 96), B=(12, 96, 104)),
        "kb": uniform(A=(128, 512, 1024), B=(128, 1024, 2048)),
        "kb_v0": normal(A=(128, 128, 256), B=(128, 256, 512)),
    },
)

MATRIX_VECTOR = Task(
    id="1_004",
    name="Matrix_vector_multiplication",
    family="matmul",
    source=forward_text(product),
    sizes={
        "cpu": uniform(A=(150, 10000), B=(10000, 1)),
        "kb": uniform(A=(2048, 1048576), B=(1048576, 1)),
        "kb_v0": normal(A=(256, 131072), B=(131072, 1)),
    },
)

ROW_SCALING = Task(
    id="1_012",
    name="Matmul_with_diagonal_matrices",
    family="matmul",
    source=forward_text(row_scaling),
    sizes={
        "cpu": uniform(A=(1300,), B=(1300, 1000)),
        "kb": uniform(A=(4096,), B=(4096, 4096)),
        "kb_v0": normal(A=(4096,), B=(4096, 4096)),
    },
    sources_at={"kb_v0": forward_text(diagonal_product)},
    notes=("At kb_v0 the reference is diag(A) @ B, whose algebra shrinks to the row scaling of the other sizes.",),
)
