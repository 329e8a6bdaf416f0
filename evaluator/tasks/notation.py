"""How the catalog's entries are written down: a function for the reference, keywords for the arrays."""

import inspect
import math
import textwrap
from collections.abc import Callable

from evaluator.tasks.task import Array

Shape = tuple[int, ...]


def forward_text(function: Callable) -> str:
    """Source text of `function`, renamed to `forward`: what a prompt shows and what `nn.run` compiles."""
    text = textwrap.dedent(inspect.getsource(function)).replace("  # fmt: skip", "")
    head = f"def {function.__name__}("
    if not text.startswith(head):
        raise ValueError(f"expected a plain function whose text starts with {head!r}, saw {text.splitlines()[0]!r}")
    return "def forward(" + text.removeprefix(head)


def uniform(**shapes: Shape) -> tuple[Array, ...]:
    """Inputs drawn from [0, 1), as the benchmark's present version does: `uniform(x=(64, 300))`."""
    return tuple(Array(name, shape, init="uniform(0,1)") for name, shape in shapes.items())


def normal(**shapes: Shape) -> tuple[Array, ...]:
    """Inputs drawn from the standard normal distribution, as the benchmark's version 0 does."""
    return tuple(Array(name, shape, init="normal(0,1)") for name, shape in shapes.items())


def parameter(name: str, shape: Shape, init: str) -> Array:
    """A weight of the model, drawn from `init`."""
    return Array(name, shape, init=init, parameter=True)


def layer(name: str, shape: Shape, bias: bool = True, outputs: int | None = None) -> tuple[Array, ...]:
    """Weight `shape` of a linear or convolution layer, and its bias, as PyTorch initialises them.

    Both are uniform within 1 / sqrt(fan-in), which PyTorch takes from the weight's dimensions after the first, of
    transposed convolutions too. `outputs` is the bias' length where it is not the weight's first dimension.
    """
    bound = f"{math.prod(shape[1:]) ** -0.5:.6g}"
    init = f"uniform(-{bound},{bound})"
    weight = parameter(f"{name}.weight", shape, init)
    return (weight, parameter(f"{name}.bias", (outputs or shape[0],), init)) if bias else (weight,)
