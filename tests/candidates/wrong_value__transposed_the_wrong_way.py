# task: 1_001
"""A square product with an operand turned around, which no shape gives away."""

from evaluator import lib


def forward(a, b):
    return lib.gemm(a, b, transpose_b=True)
