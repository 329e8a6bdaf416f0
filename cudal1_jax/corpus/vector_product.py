"""Matrix-vector products, from either side and of either orientation: reductions of rows or columns by weight."""

from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import fold as folds
from cudal1_jax.corpus import layout, workload
from cudal1_jax.corpus.chain import Chain, Formula, Operand
from cudal1_jax.corpus.layout import Lines
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.pointwise import BINARY, Step
from cudal1_jax.corpus.reduction import forms
from cudal1_jax.corpus.reduction_forms import Spec
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "matmul"
MUL = next(kind for kind in BINARY if kind.name == "mul")
NAMES = (("A", "v"), ("A", "x"), ("w", "x"), ("M", "v"), ("matrix", "vector"))
BOTTLENECKS = (
    "Every element of the matrix is used once: reading it bounds the time, the vector is reused.",
    "One multiply-add per matrix element, so the product is as fast as the matrix can be read.",
)


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    shape = layout.draw_shape(rng, 2, elements)
    matrix, vector = rng.choice(NAMES)
    rows = rng.random() < 0.6  # the vector meets the rows: A @ v; else the columns: v @ A or A.T @ v
    lines = Lines(shape, (1 if rows else 0,))
    keepdim = rng.random() < 0.6
    text, extent, first = _product(rng, matrix, vector, rows, keepdim, lines.length)
    after = rng.choice((0, 1, 1, 1, 2, 2, 3)) if rows else rng.choice((0, 1, 1, 1, 2))
    out_shape = lines.reduced(keepdim)
    operands, others = draw_operands(rng, out_shape, int(after > 0 and rng.random() < 0.4), matrix, ("full",))
    if vector.lower() in {array.name.lower() for array in others}:
        operands, others = (), ()
    epilogue = chains.draw(rng, after, operands)
    init = rng.choice(("uniform(0,1)", "normal(0,1)"))
    pair = [Array(matrix, shape, init=init), Array(vector, extent, init=init)]
    arrays = (*(pair if first == matrix else pair[::-1]), *others)
    prologue = Chain((Step(MUL, (), vector),), (Operand(vector, "row", vector),))
    spec = Spec(
        prologue, folds.BY_NAME["sum"], epilogue, matrix, lines, keepdim,
        tuple(array.name for array in arrays), title=rng.choice(("matvec", "gemv")) if rows else "vecmat",
    )  # fmt: skip
    formula = Formula.drawn(rng, matrix, spec.arguments)
    formula.open, formula.infix = text, "@" in text
    formula.steps(epilogue)
    return Workload(
        task=workload.task(
            FAMILY, formula.source(spec.arguments), arrays, workload.cases_after_sum(len(epilogue.steps))
        ),
        canonical=("matvec" if rows else "matmul_nn" if keepdim else "vecmat", *epilogue.names),
        bottleneck=rng.choice(BOTTLENECKS),
        writers=tuple(partial(form, spec) for form in forms(spec)),
    )


def _product(
    rng: Random, matrix: str, vector: str, rows: bool, keepdim: bool, length: int
) -> tuple[str, tuple[int, ...], str]:
    """Text of the product, shape of the vector, and which argument comes first."""
    call = rng.random() < 0.7
    if rows:
        left, right, first = matrix, vector, matrix
        extent: tuple[int, ...] = (length, 1) if keepdim else (length,)
    else:
        left, right, first = vector, matrix, vector
        extent = (1, length) if keepdim else (length,)
        if not keepdim and rng.random() < 0.5:
            left, right, first = f"{matrix}.T", vector, matrix
    return (f"nn.matmul({left}, {right})" if call else f"{left} @ {right}"), extent, first
