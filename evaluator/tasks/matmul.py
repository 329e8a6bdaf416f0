"""Matrix products of KernelBench level 1, and scaling by a number or a diagonal matrix."""

from collections.abc import Callable, Mapping

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Array, Task


def product(nn, A, B):
    return nn.matmul(A, B)


def batched_product(nn, A, B):
    return nn.bmm(A, B)


def product_of_transposed_first(nn, A, B):
    return nn.matmul(A.T, B)


def product_of_transposed_second(nn, A, B):
    return nn.matmul(A, B.T)


def product_of_transposed(nn, A, B):
    return nn.matmul(A.T, B.T)


def product_of_tensor_and_matrix(nn, A, B):
    return nn.einsum("bijl,lk->bijk", A, B)


def product_of_upper_triangles(nn, A, B):
    return nn.triu(nn.matmul(A, B))


def product_of_lower_triangles(nn, A, B):
    return nn.tril(nn.matmul(A, B))


def number_scaling(nn, A, s):
    return A * s


def row_scaling(nn, A, B):
    return nn.unsqueeze(A, 1) * B


def diagonal_product(nn, A, B):
    return nn.matmul(nn.diag(A), B)


Arrays = tuple[Array, ...]


def task(number: int, name: str, function: Callable, sizes: Mapping[str, Arrays], notes: tuple[str, ...] = ()) -> Task:
    """A product of KernelBench level 1."""
    source = forward_text(function)
    return Task(id=f"1_{number:03}", name=name, family="matmul", source=source, sizes=sizes, notes=notes)


def square(side: int, structure: str, draws: str) -> Arrays:
    """Two square matrices of one structure, made of `draws`."""
    return tuple(Array(name, (side, side), init=f"{structure}({draws})") for name in "AB")


def squares(structure: str, cpu: int) -> dict[str, Arrays]:
    """Sizes of products of square matrices that have a structure."""
    return {
        "cpu": square(cpu, structure, "uniform(0,1)"),
        "kb": square(4096, structure, "uniform(0,1)"),
        "kb_v0": square(4096, structure, "normal(0,1)"),
    }


def scaled(draws: Arrays) -> Arrays:
    """The matrix and its factor, in the benchmark a number of the program's text."""
    return (*draws, Array("s", (), init="constant(3.14)"))


TRIANGLES = ("Without the terms that hold a zero of either triangle, a sixth of the multiplications is left.",)

SQUARE = task(
    1,
    "Square_matrix_multiplication",
    product,
    {
        "cpu": uniform(A=(200, 200), B=(200, 200)),
        "kb": uniform(A=(4096, 4096), B=(4096, 4096)),
        "kb_v0": normal(A=(2048, 2048), B=(2048, 2048)),
    },
)
RECTANGULAR = task(
    2,
    "Standard_matrix_multiplication",
    product,
    {
        "cpu": uniform(A=(100, 320), B=(320, 200)),
        "kb": uniform(A=(2048, 8192), B=(8192, 4096)),
        "kb_v0": normal(A=(1024, 4096), B=(4096, 2048)),
    },
)
BATCHED = task(
    3,
    "Batched_matrix_multiplication",
    batched_product,
    {
        "cpu": uniform(A=(12, 50, 96), B=(12, 96, 104)),
        "kb": uniform(A=(128, 512, 1024), B=(128, 1024, 2048)),
        "kb_v0": normal(A=(128, 128, 256), B=(128, 256, 512)),
    },
)
MATRIX_VECTOR = task(
    4,
    "Matrix_vector_multiplication",
    product,
    {
        "cpu": uniform(A=(150, 10000), B=(10000, 1)),
        "kb": uniform(A=(2048, 1048576), B=(1048576, 1)),
        "kb_v0": normal(A=(256, 131072), B=(131072, 1)),
    },
)
NUMBER_SCALING = task(
    5,
    "Matrix_scalar_multiplication",
    number_scaling,
    {
        "cpu": scaled(uniform(A=(1300, 1000))),
        "kb": scaled(uniform(A=(65536, 16384))),
        "kb_v0": scaled(normal(A=(16384, 4096))),
    },
    notes=("The factor is an array of no dimension here, a Python number in the benchmark.",),
)
LARGE_K = task(
    6,
    "Matmul_with_large_K_dimension",
    product,
    {
        "cpu": uniform(A=(30, 9001), B=(9001, 20)),
        "kb": uniform(A=(256, 524288), B=(524288, 256)),
        "kb_v0": normal(A=(256, 131072), B=(131072, 256)),
    },
)
SMALL_K = task(
    7,
    "Matmul_with_small_K_dimension",
    product,
    {
        "cpu": uniform(A=(500, 18), B=(18, 500)),
        "kb": uniform(A=(32768, 64), B=(64, 32768)),
        "kb_v0": normal(A=(16384, 32), B=(32, 16384)),
    },
)
IRREGULAR = task(
    8,
    "Matmul_with_irregular_shapes",
    product,
    {
        "cpu": uniform(A=(205, 149), B=(149, 173)),
        "kb": uniform(A=(8205, 2949), B=(2949, 5921)),
        "kb_v0": normal(A=(8205, 2949), B=(2949, 5921)),
    },
)
TALL_SKINNY = task(
    9,
    "Tall_skinny_matrix_multiplication",
    product,
    {
        "cpu": uniform(A=(700, 8), B=(8, 700)),
        "kb": uniform(A=(32768, 32), B=(32, 32768)),
        "kb_v0": normal(A=(16384, 16), B=(16, 16384)),
    },
)
TENSOR_3D = task(
    10,
    "3D_tensor_matrix_multiplication",
    product,
    {
        "cpu": uniform(A=(5, 40, 150), B=(150, 100)),
        "kb": uniform(A=(16, 1024, 2048), B=(2048, 768)),
        "kb_v0": normal(A=(16, 1024, 2048), B=(2048, 768)),
    },
)
TENSOR_4D = task(
    11,
    "4D_tensor_matrix_multiplication",
    product_of_tensor_and_matrix,
    {
        "cpu": uniform(A=(3, 10, 20, 50), B=(50, 72)),
        "kb": uniform(A=(8, 256, 512, 256), B=(256, 768)),
        "kb_v0": normal(A=(16, 256, 512, 256), B=(256, 768)),
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

SYMMETRIC = task(13, "Matmul_for_symmetric_matrices", product, squares("symmetric", cpu=180))
UPPER_TRIANGLES = task(
    14, "Matmul_for_upper_triangular_matrices", product_of_upper_triangles, squares("triu", cpu=260), TRIANGLES
)
LOWER_TRIANGLES = task(
    15, "Matmul_for_lower_triangular_matrices", product_of_lower_triangles, squares("tril", cpu=260), TRIANGLES
)
TRANSPOSED_FIRST = task(
    16,
    "Matmul_with_transposed_A",
    product_of_transposed_first,
    {
        "cpu": uniform(A=(320, 100), B=(320, 200)),
        "kb": uniform(A=(8192, 2048), B=(8192, 4096)),
        "kb_v0": normal(A=(4096, 1024), B=(4096, 2048)),
    },
)
TRANSPOSED_SECOND = task(
    17,
    "Matmul_with_transposed_B",
    product_of_transposed_second,
    {
        "cpu": uniform(A=(100, 320), B=(200, 320)),
        "kb": uniform(A=(2048, 8192), B=(4096, 8192)),
        "kb_v0": normal(A=(1024, 4096), B=(2048, 4096)),
    },
)
TRANSPOSED_BOTH = task(
    18,
    "Matmul_with_transposed_both",
    product_of_transposed,
    {
        "cpu": uniform(A=(320, 100), B=(200, 320)),
        "kb": uniform(A=(8192, 2048), B=(4096, 8192)),
        "kb_v0": normal(A=(4096, 1024), B=(2048, 4096)),
    },
)
