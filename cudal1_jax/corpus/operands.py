"""Further inputs of a task, with the shapes that broadcast them against the main one."""

from random import Random

from cudal1_jax.corpus.chain import Operand
from cudal1_jax.corpus.naming import operand_names
from evaluator.tasks.task import Array

PLACES = {  # where an operand may stand against a value of so many dimensions, as often as it is to be drawn
    1: ("full",),
    2: ("full", "full", "row", "row", "column", "column", "column", "scalar"),
    3: ("full", "full", "row", "channel", "channel", "batch", "item", "scalar"),
    4: ("full", "full", "row", "channel", "channel", "batch", "item", "scalar"),
}


def draw_operands(
    rng: Random, shape: tuple[int, ...], number: int, main: str, places: tuple[str, ...] = ()
) -> tuple[tuple[Operand, ...], tuple[Array, ...]]:
    """Operands for a value of `shape`, with the arrays that carry them."""
    allowed = places or PLACES[len(shape)]
    operands, arrays = [], []
    taken = {main}
    for _ in range(number):
        place = rng.choice(allowed)
        name = operand_names(rng, place, taken)
        taken.add(name)
        extent, text = _operand_shape(rng, shape, place, name)
        operands.append(Operand(name, place, text))
        arrays.append(Array(name, extent, init=rng.choice(("uniform(0,1)", "normal(0,1)"))))
    return tuple(operands), tuple(arrays)


def _operand_shape(rng: Random, shape: tuple[int, ...], place: str, name: str) -> tuple[tuple[int, ...], str]:
    rank = len(shape)
    if place == "full":
        return shape, name
    if place == "row":
        return shape[-1:], name
    if place == "scalar":
        return (1,), name
    if place == "item":
        return shape[1:], name
    if place == "channel":
        return _along(rng, shape[1], name, before=rng.choice((0, 1)), after=rank - 2)
    return _along(rng, shape[0], name, before=0, after=rank - 1)


def _along(rng: Random, extent: int, name: str, before: int, after: int) -> tuple[tuple[int, ...], str]:
    """An array along one dimension with `after` dimensions behind it: of that shape, or of rank one and reshaped."""
    kind = rng.choice(("kept", "none", "reshape", "unsqueeze") if not before and after == 1 else ("kept", "none"))
    if kind == "kept":
        return (*(1,) * before, extent, *(1,) * after), name
    if kind == "none":
        return (extent,), f"{name}[{', '.join([*['None'] * before, ':', *['None'] * after])}]"
    if kind == "reshape":
        return (extent,), f"nn.reshape({name}, (-1, 1))"
    return (extent,), f"nn.unsqueeze({name}, {rng.choice((1, 1, -1))})"
