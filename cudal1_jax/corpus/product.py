"""Small matrix products: plain, transposed and batched, with bias, activation and residual."""

import dataclasses
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import workload
from cudal1_jax.corpus.chain import Formula, Operand
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.product_forms import Spec, forms
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "matmul"


ORIENTATIONS = (  # left transposed, right transposed; as often as they are to be drawn
    *((False, False),) * 3,
    *((False, True),) * 2,
    (True, False),
    (True, True),
)
NAMES = (("A", "B"), ("A", "B"), ("A", "B"), ("x", "weight"), ("x", "w"), ("a", "b"), ("x", "y"))


def draw_extents(rng: Random, work: tuple[int, int]) -> tuple[int, int, int]:
    """Rows, columns and inner extent of a product of a number of multiply-adds in the given range."""
    low, high = work
    while True:
        n, m, k = (
            rng.choice((rng.randrange(5, 200), 16 * rng.randrange(1, 14), 10 * rng.randrange(1, 25))) for _ in range(3)
        )
        if low <= n * m * k <= high:
            return n, m, k


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    n, m, k = draw_extents(rng, (elements[0] * 8, elements[1] * 8))
    if rng.random() < 0.25:
        n = m = k = round((n * m * k) ** (1 / 3))
    batched, stacked = rng.choices(((False, False), (True, False), (False, True)), (65, 17, 18))[0]
    batch = rng.randrange(2, 9)
    left_transposed, right_transposed = rng.choice(ORIENTATIONS)
    left_transposed = left_transposed and not (batched or stacked)
    right_transposed = right_transposed and not batched
    left, right = rng.choice(NAMES)
    after = rng.choice((0, 0, 1, 1, 1, 2, 2, 3))
    if stacked:
        after = rng.choice((0, 0, 0, 1, 1, 2))
        batch = rng.choice([count for count in range(2, 9) if count <= n])
        n = n // batch * batch
    out_shape = (batch, n, m) if batched else (batch, n // batch, m) if stacked else (n, m)
    places = ("full", "row") if batched or stacked else ("row", "row", "full", "column", "scalar")
    operands, arrays = draw_operands(rng, out_shape, int(after > 0 and rng.random() < 0.6), left, places)
    if right.lower() in {array.name.lower() for array in arrays}:
        operands, arrays = _renamed(operands, arrays)
    epilogue = chains.draw(rng, after, operands)
    linear = right_transposed and not left_transposed and rng.random() < 0.3
    lead = (batch,) if batched else ()
    shapes = (
        (batch, n // batch, k) if stacked else (*lead, *((k, n) if left_transposed else (n, k))),
        (*lead, *((m, k) if right_transposed else (k, m))),
    )
    init = rng.choice(("uniform(0,1)", "normal(0,1)"))
    arrays = (Array(left, shapes[0], init=init), Array(right, shapes[1], init=init), *arrays)
    spec = Spec(
        left,
        right,
        left_transposed,
        right_transposed,
        batched,
        stacked,
        linear,
        epilogue,
        tuple(a.name for a in arrays),
    )
    return Workload(
        task=workload.task(FAMILY, _source(rng, spec), arrays, workload.cases_after_sum(len(epilogue.steps))),
        canonical=(spec.name, *epilogue.names),
        bottleneck=rng.choice(BOTTLENECKS),
        writers=tuple(partial(form, spec) for form in forms(spec)),
    )


BOTTLENECKS = (
    "Each output is a dot product; operands are read again for every output, so their reuse decides.",
    "Two loads per multiply-add unless operands are reused: the loads bound the time.",
    "Arithmetic grows faster than data here: keeping operands close to the threads is what can be won.",
)


def _renamed(operands: tuple[Operand, ...], arrays: tuple[Array, ...]) -> tuple[tuple[Operand, ...], tuple[Array, ...]]:
    """Operands with a name that no matrix has."""
    fresh = tuple(dataclasses.replace(o, name=f"{o.name}2", nn=o.nn.replace(o.name, f"{o.name}2")) for o in operands)
    return fresh, tuple(dataclasses.replace(array, name=f"{array.name}2") for array in arrays)


def _source(rng: Random, spec: Spec) -> str:
    formula = Formula.drawn(rng, spec.left, spec.arguments)
    left = rng.choice((f"{spec.left}.T", f"nn.transpose({spec.left}, 0, 1)")) if spec.left_transposed else spec.left
    right = (
        rng.choice((f"{spec.right}.T", f"{spec.right}.T", f"nn.transpose({spec.right}, 0, 1)"))
        if spec.right_transposed
        else spec.right
    )
    if spec.linear:
        formula.open = f"nn.linear({spec.left}, {spec.right})"
    elif spec.batched and rng.random() < 0.5:
        formula.open = f"nn.bmm({left}, {right})"
    elif rng.random() < 0.3:
        formula.open, formula.infix = f"{left} @ {right}", True
    else:
        formula.open = f"nn.matmul({left}, {right})"
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)
