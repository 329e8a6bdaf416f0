"""Reductions of one or several adjacent dimensions, with elementwise steps before and after."""

from collections.abc import Callable
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import fold as folds
from cudal1_jax.corpus import layout, workload
from cudal1_jax.corpus import reduction_lines as lines_forms
from cudal1_jax.corpus import reduction_rows as rows_forms
from cudal1_jax.corpus.chain import Formula, Operand
from cudal1_jax.corpus.layout import Lines
from cudal1_jax.corpus.naming import pick_main
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.program import Program
from cudal1_jax.corpus.reduction_forms import Spec
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "reduction"


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    lines = layout.draw_rows(rng, elements) if rng.random() < 0.5 else layout.draw_strided(rng, elements)
    main, keepdim = pick_main(rng), rng.random() < 0.5
    fold = rng.choices(folds.FOLDS, [fold.weight for fold in folds.FOLDS])[0]
    before, after = rng.choice((0, 0, 0, 1, 1, 2)), rng.choice((0, 0, 0, 1, 1, 2))
    operands: tuple[Operand, ...] = ()
    arrays: tuple[Array, ...] = ()
    if before and rng.random() < 0.4:
        places = ("full", "full", "row") if lines.contiguous and len(lines.dims) == 1 else ("full",)
        operands, arrays = draw_operands(rng, lines.shape, 1, main, places)
    prologue = chains.draw(rng, before, operands)
    operands, others = (), tuple[Array, ...]()
    if after and rng.random() < 0.25:
        operands, others = draw_operands(rng, lines.reduced(keepdim), 1, main, ("full",))
        if {array.name for array in others} & {array.name for array in arrays}:
            operands, others = (), tuple[Array, ...]()
    epilogue = chains.draw(rng, after, operands)
    arrays = (Array(main, lines.shape, init=rng.choice(("uniform(0,1)", "normal(0,1)"))), *arrays, *others)
    arguments = tuple(array.name for array in arrays)
    spec = Spec(prologue, fold, epilogue, main, lines, keepdim, arguments)
    return Workload(
        task=workload.task(
            FAMILY, _source(rng, spec), arrays, workload.cases_after_sum(0 if fold.exact else len(epilogue.steps))
        ),
        canonical=(*prologue.names, f"{fold.name}@{lines.where}", *epilogue.names),
        bottleneck=_bottleneck(rng, spec),
        writers=tuple(partial(form, spec) for form in forms(spec)),
    )


def dim_text(rng: Random, lines: Lines) -> str:
    """How a task names the reduced dimension: an index, sometimes counted from the end, or a tuple."""
    if len(lines.dims) > 1:
        return f"dim={lines.dims}"
    last = lines.dims[0] == len(lines.shape) - 1
    return "dim=-1" if last and rng.random() < 0.35 else f"dim={lines.dims[0]}"


def _source(rng: Random, spec: Spec) -> str:
    formula = Formula.drawn(rng, spec.main, spec.arguments)
    formula.steps(spec.prologue)
    keepdim = ", keepdim=True" if spec.keepdim else ""
    template = spec.fold.nn.replace("{dim}", dim_text(rng, spec.lines)).replace("{keepdim}", keepdim)
    formula.apply(template, spec.fold.infix)
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)


def _bottleneck(rng: Random, spec: Spec) -> str:
    if spec.lines.contiguous:
        return rng.choice(
            (
                "Each output needs one pass over a contiguous row; reading the input bounds the time.",
                "A row gives one number: one read per element, and the cost of combining partial results.",
            )
        )
    return rng.choice(
        (
            "The reduced elements lie apart in memory, so neighbouring threads should take neighbouring outputs.",
            "Each output sums along a strided line; one read per element bounds the time.".replace("sums", "folds"),
        )
    )


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """Writers for a reduction, the plain one first."""
    if spec.lines.contiguous:
        alone = spec.fold.exact or spec.lines.length <= layout.LONGEST_SUM
        in_four = spec.fold.exact or spec.lines.length <= 4 * layout.LONGEST_SUM
        vectors = spec.lines.length % 64 == 0 and not (spec.fold.uses_value_twice and spec.prologue.steps)
        return (
            *((rows_forms.row_per_thread,) if alone else ()),
            *((rows_forms.row_accumulators,) if in_four else ()),
            *((rows_forms.block_tree,) if spec.lines.blocks(rows_forms.BLOCKS) else ()),
            *((rows_forms.warp_per_row,) if spec.lines.suit_warps else ()),
            *((rows_forms.vector_row,) if vectors else ()),
        )
    return (
        lines_forms.line_per_thread,
        lines_forms.line_accumulators,
        lines_forms.outputs_per_thread,
        lines_forms.split_line,
    )
