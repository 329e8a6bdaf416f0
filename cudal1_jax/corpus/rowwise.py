"""Row-wise functions: softmax and norms over the last, trailing or an inner dimension, with steps before and after."""

from collections.abc import Sequence
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, workload
from cudal1_jax.corpus.chain import Formula, Operand
from cudal1_jax.corpus.layout import Lines
from cudal1_jax.corpus.naming import pick_main
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.reduction import dim_text
from cudal1_jax.corpus.rowkind import KINDS, RowKind
from cudal1_jax.corpus.rowwise_forms import Spec, forms
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import CASES, Array

FAMILY = "rowwise"


AFFINE = tuple(kind for kind in KINDS if kind.affine)


def draw_affine(rng: Random, elements: tuple[int, int]) -> Workload:
    """A norm with weights, which most often have the shape of several trailing dimensions."""
    return draw(rng, elements, AFFINE)


def draw(rng: Random, elements: tuple[int, int], kinds: Sequence[RowKind] = KINDS) -> Workload:
    kind = rng.choices(kinds, [kind.weight for kind in kinds])[0]
    contiguous = bool(rng.random() < 0.6 or kind.affine or kind.images)
    if kind.images:
        lines = layout.draw_images(rng, elements)
    elif kind.affine:
        lines = layout.draw_trailing(rng, elements)
    elif contiguous:
        lines = layout.draw_rows(rng, elements)
    else:
        lines = layout.draw_strided(rng, elements, ranks=(2, 3, 3, 4, 4), longest=kind.longest)
    main = pick_main(rng)
    before, after = rng.choice(((0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (0, 2), (2, 0)))
    if kind.affine:  # long programs already: a step after them at most, rarely one before, which every pass repeats
        before, after = rng.choice(((0, 0), (0, 1), (0, 1), (1, 0)))
    single = len(lines.dims) == 1 and contiguous
    places = ("full", "row", "row", "scalar") if single else ("full", "scalar")
    weight, bias, affine = _affine(rng, kind, lines)
    taken = (main, *(array.name for array in affine))
    first, first_arrays = _operands(rng, lines, int(before > 0 and rng.random() < 0.3), taken, places)
    taken = (*taken, *(array.name for array in first_arrays))
    after_operands = after > 0 and not kind.reduces and rng.random() < 0.35
    last, last_arrays = _operands(rng, lines, int(after_operands), taken, places)
    prologue = chains.draw(rng, before, first)
    epilogue = chains.draw(rng, after, last, known=kind.gives)
    init = rng.choice(("uniform(0,1)", "normal(0,1)"))
    arrays = (Array(main, lines.shape, init=init), *first_arrays, *affine, *last_arrays)
    spec = Spec(
        prologue, kind, rng.choice(("1e-5", "1e-5", "1e-6")), weight, bias, epilogue, main, lines,
        tuple(array.name for array in arrays), kind.reduces and rng.random() < 0.5,
    )  # fmt: skip
    return Workload(
        task=workload.task(FAMILY, _source(rng, spec), arrays, _cases(spec)),
        canonical=(*prologue.names, f"{kind.name}@{lines.where}{_affine_mark(spec)}", *epilogue.names),
        bottleneck=rng.choice(kind.bottlenecks),
        writers=tuple(partial(form, spec) for form in forms(spec)),
    )


def _affine(rng: Random, kind: RowKind, lines: Lines) -> tuple[str | None, str | None, tuple[Array, ...]]:
    if not kind.affine or (kind.affine != "required" and rng.random() < 0.25):
        return None, None, ()
    shape = tuple(lines.shape[dim] for dim in lines.dims)
    weight, bias = rng.choice((("weight", "bias"), ("ln_weight", "ln_bias"), ("gamma", "beta"), ("w", "b")))
    arrays = [Array(weight, shape, init=rng.choice(("constant(1)", "normal(0,1)", "uniform(0,1)")))]
    if not kind.bias:
        return weight, None, tuple(arrays)
    arrays.append(Array(bias, shape, init=rng.choice(("constant(0)", "normal(0,1)"))))
    return weight, bias, tuple(arrays)


def _operands(
    rng: Random, lines: Lines, number: int, taken: tuple[str, ...], places: tuple[str, ...]
) -> tuple[tuple[Operand, ...], tuple[Array, ...]]:
    while True:
        operands, arrays = draw_operands(rng, lines.shape, number, taken[0], places)
        if not {array.name.lower() for array in arrays} & {name.lower() for name in taken}:
            return operands, arrays


def _affine_mark(spec: Spec) -> str:
    return "+affine" if spec.weight else ""


def _source(rng: Random, spec: Spec) -> str:
    formula = Formula.drawn(rng, spec.main, spec.arguments)
    formula.steps(spec.prologue)
    shape = tuple(spec.lines.shape[dim] for dim in spec.lines.dims)
    for template, infix in spec.kind.nn(rng):
        text = template.replace("{dim}", dim_text(rng, spec.lines)).replace("{eps}", spec.eps)
        text = text.replace("{keepdim}", ", keepdim=True" if spec.keepdim else "")
        text = text.replace("{shape}", f"{spec.weight}.shape" if spec.weight and rng.random() < 0.7 else str(shape))
        text = text.replace(
            "{affine}", f", {spec.weight}" + (f", {spec.bias}" if spec.bias else "") if spec.weight else ""
        )
        name, is_statement, value = text.partition(" = ")
        if is_statement:
            formula.let(name, value)
        else:
            formula.apply(text, infix)
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)


def _cases(spec: Spec) -> tuple[str, ...] | None:
    """Correctness cases that make sense, None for all.

    Where steps before make the values of a row equal or nearly so (a saturated tanh, a rounded constant), what is left
    of a centred row is the rounding of its mean times 1 / sqrt(eps): noise, in any program.
    """
    if spec.kind.centred and spec.prologue.steps:
        return ("negated", "one_changed", "permuted")
    # A row of zeros has no direction: NaN, which fmaxf and PyTorch's clamp treat differently.
    has_zeros = ("structured", "sparse")
    return tuple(case for case in CASES if case not in has_zeros) if spec.kind.name.endswith("_unit") else None
