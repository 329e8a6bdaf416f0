"""Further inputs of a task, with the shapes that broadcast them against the main one."""

from random import Random

from cudal1_jax.corpus.chain import Operand
from cudal1_jax.corpus.naming import operand_names
from evaluator.tasks.task import Array


def draw_operands(
    rng: Random, shape: tuple[int, ...], number: int, main: str, places: tuple[str, ...] = ()
) -> tuple[tuple[Operand, ...], tuple[Array, ...]]:
    """Operands for a value of `shape`, with the arrays that carry them."""
    allowed = places or {1: ("full",), 2: ("full", "full", "row", "column", "scalar")}.get(
        len(shape), ("full", "full", "row", "channel", "scalar")
    )
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
    if place == "full":
        return shape, name
    if place == "row":
        return shape[-1:], name
    if place == "scalar":
        return (1,), name
    if place == "channel":
        return (shape[1], *(1,) * (len(shape) - 2)), name
    kind = rng.choice(("kept", "none", "unsqueeze"))
    if kind == "kept":
        return (shape[0], 1), name
    return shape[:1], f"{name}[:, None]" if kind == "none" else f"nn.unsqueeze({name}, 1)"
