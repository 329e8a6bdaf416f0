"""Elementwise chains over one to three inputs, broadcasting included."""

from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, workload
from cudal1_jax.corpus.chain import Formula
from cudal1_jax.corpus.elementwise_forms import forms
from cudal1_jax.corpus.elementwise_setting import Spec
from cudal1_jax.corpus.naming import pick_main
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "elementwise"
BROADCAST = {  # places of an operand that has fewer elements than the value
    2: ("row", "column", "column", "column"),
    3: ("row", "channel", "channel", "batch", "item"),
    4: ("row", "channel", "channel", "batch", "item"),
}


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    rank = rng.choice((1, 2, 2, 2, 3, 4))
    shape = layout.draw_shape(rng, rank, elements)
    main = pick_main(rng)
    length = rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))
    number, places = min(length, rng.choice((0, 0, 0, 1, 1, 1, 2))), tuple[str, ...]()
    if rank > 1 and rng.random() < 0.3:
        length, number, places = rng.choice((1, 1, 1, 2, 2, 3)), 1, BROADCAST[rank]
    operands, arrays = draw_operands(rng, shape, number, main, places)
    chain = chains.draw(rng, length, operands, origin=main)
    arrays = (Array(main, shape, init=rng.choice(("uniform(0,1)", "normal(0,1)"))), *arrays)
    if rng.random() < 0.5:
        arrays = tuple(rng.sample(arrays, len(arrays)))
    arguments = tuple(array.name for array in arrays)
    formula = Formula.drawn(rng, main, arguments, again=chain.uses_origin)
    formula.steps(chain)
    spec = Spec(chain, main, shape, arguments)
    return Workload(
        task=workload.task(FAMILY, formula.source(arguments), arrays),
        canonical=chain.names,
        bottleneck=_bottleneck(rng, spec),
        writers=tuple(partial(form, spec) for form in forms(spec)),
    )


def _bottleneck(rng: Random, spec: Spec) -> str:
    reads, steps = len(spec.arguments), len(spec.chain.steps)
    return rng.choice(
        (
            f"Every element is independent: {reads} read{'s' if reads > 1 else ''} and one write, so traffic decides.",
            f"{steps} step{'s' if steps > 1 else ''} per element; intermediate arrays would only add traffic.",
            "Little arithmetic per element, so loads, stores and thread overhead bound the time.",
        )
    )
