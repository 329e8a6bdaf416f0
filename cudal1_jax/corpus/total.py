"""Losses and other reductions of everything: one number from one, two or three arrays."""

import dataclasses
import math
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import fold as folds
from cudal1_jax.corpus import layout, pointwise, workload
from cudal1_jax.corpus.chain import Chain, Formula, Operand
from cudal1_jax.corpus.naming import pick_main
from cudal1_jax.corpus.pointwise import Kind, Step
from cudal1_jax.corpus.total_forms import Spec, forms
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "loss"

HUBER = Kind("huber", "", "fabsf({v}) < 1.0f ? 0.5f * {v} * {v} : fabsf({v}) - 0.5f")
LOG_COSH = Kind(
    "log_cosh", "nn.abs({v}) + nn.softplus(-2.0 * nn.abs({v}))", "fabsf({v}) + log1pf(expf(-2.0f * fabsf({v})))", True
)
HINGE = Kind("hinge", "nn.clamp(1.0 - {v}, min=0.0)", "fmaxf(1.0f - {v}, 0.0f)")
MARGIN = Kind("margin", "nn.clamp({c} - {v}, min=0.0)", "fmaxf({c} - {v}, 0.0f)", False, "f")
LOGISTIC = Kind("logistic", "nn.softplus(-{v})", "fmaxf(-{v}, 0.0f) + log1pf(expf(-fabsf({v})))")
BY_NAME = {kind.name: kind for kind in (*pointwise.UNARY, *pointwise.BINARY, HUBER, LOG_COSH, HINGE, MARGIN, LOGISTIC)}

# name, element steps of (first, second), text of the whole reduction where nn has one, weight
LOSSES = (
    ("l1_loss", ("sub", "abs"), "nn.l1_loss({a}, {b}{reduction})", 4),
    ("mse_loss", ("sub", "square"), "nn.mse_loss({a}, {b}{reduction})", 4),
    ("huber_loss", ("sub", "huber"), "nn.smooth_l1_loss({a}, {b}{reduction})", 5),
    ("hinge_loss", ("mul", "hinge"), "", 4),
    ("margin_loss", ("mul", "margin"), "", 2),
    ("squared_hinge_loss", ("mul", "hinge", "square"), "", 2),
    ("log_cosh_loss", ("sub", "log_cosh"), "", 2),
    ("logistic_loss", ("mul", "logistic"), "", 2),
    ("dot", ("mul",), "", 2),
    ("leaky_difference", ("sub", "leaky_relu"), "", 1),
    ("root_difference", ("sub", "sqrt_abs"), "", 1),
)
PAIRS = (("predictions", "targets"), ("predictions", "targets"), ("x", "y"), ("a", "b"), ("pred", "target"), ("A", "B"))


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    fewer = (elements[0], min(elements[1], 1024 * layout.LONGEST_SUM))
    shape = layout.draw_shape(rng, rng.choice((1, 2, 2, 2, 2, 3, 4)), fewer)
    after = rng.choice((0, 0, 0, 0, 1, 1))
    if rng.random() < 0.75:
        name, chain, text, pair = _loss(rng)
        fold = folds.BY_NAME["mean" if rng.random() < 0.6 else "sum"]
    else:
        name, chain, text, pair = _plain(rng)
        fold = rng.choices(folds.FOLDS, [fold.weight for fold in folds.FOLDS])[0]
    epilogue = chains.draw(rng, after)
    inits = [rng.choice(("uniform(0,1)", "normal(0,1)", "uniform(0,1)*scalar:uniform(0,1)")) for _ in pair]
    arrays = tuple(Array(name, shape, init=init) for name, init in zip(pair, inits, strict=True))
    spec = Spec(name, chain, fold, epilogue, pair[0], pair, math.prod(shape))
    return Workload(
        task=workload.task(FAMILY, _source(rng, spec, text), arrays, workload.cases_after_sum(len(epilogue.steps))),
        canonical=(*chain.names, f"{fold.name}@all", *epilogue.names),
        bottleneck=rng.choice(BOTTLENECKS),
        writers=tuple(partial(form, spec) for form in forms(spec)),
    )


BOTTLENECKS = (
    "One number from all elements: every input is read once, and the partial results must be combined cheaply.",
    "The reads are independent, the sum is not: many threads must first reduce on their own, then together.",
)


def _loss(rng: Random) -> tuple[str, Chain, str, tuple[str, ...]]:
    name, kinds, text, _ = rng.choices(LOSSES, [loss[3] for loss in LOSSES])[0]
    pair = rng.choice(PAIRS)
    operands = [Operand(pair[1], "full", pair[1])]
    steps = [pointwise.with_constants(rng, BY_NAME[kind]) for kind in kinds]
    steps[0] = dataclasses.replace(steps[0], operand=pair[1])
    if rng.random() < 0.15:
        weights = rng.choice(("weights", "w", "mask"))
        operands.append(Operand(weights, "full", weights))
        steps.append(Step(BY_NAME["mul"], (), weights))
        return (
            f"weighted_{name}",
            Chain(tuple(steps), tuple(operands)),
            "" if "huber" not in name else text,
            (*pair, weights),
        )
    return name, Chain(tuple(steps), tuple(operands)), text, pair


def _plain(rng: Random) -> tuple[str, Chain, str, tuple[str, ...]]:
    main = pick_main(rng)
    other = rng.choice([name for name in ("y", "z", "w") if name != main])
    operands = (Operand(other, "full", other),) if rng.random() < 0.35 else ()
    chain = chains.draw(rng, max(len(operands), rng.choice((0, 0, 1, 1, 2, 2, 3))), operands)
    return "total", chain, "", (main, *(operand.name for operand in operands))


def _source(rng: Random, spec: Spec, text: str) -> str:
    formula = Formula.drawn(rng, spec.main, spec.arguments)
    whole = text and len(spec.chain.operands) == 1 and (rng.random() < 0.5 or "huber" in spec.name)
    if whole:
        reduction = ', reduction="sum"' if spec.fold.name == "sum" else ""
        formula.apply(text.format(a="{v}", b=spec.arguments[1], reduction=reduction), False)
    elif "huber" in spec.name:
        call = text.format(a="{v}", b=spec.arguments[1], reduction=', reduction="none"')
        formula.apply(f"{call} * {spec.arguments[2]}", True)
        formula.apply(spec.fold.nn.replace(", p=2", "").replace(", {dim}{keepdim}", ""), False)
    else:
        formula.steps(spec.chain)
        formula.apply(spec.fold.nn.replace(", p=2", "").replace(", {dim}{keepdim}", ""), spec.fold.infix)
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)
