"""Structure that the inputs of some tasks have: triangles, symmetry, probabilities, labels of two classes.

Arrays are NumPy's, or CuPy's, whose functions NumPy's dispatch to; dtypes stay.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def upper(x: Any) -> Any:
    """Zeros below the diagonal of the last two axes."""
    return np.triu(x)


def lower(x: Any) -> Any:
    """Zeros above the diagonal of the last two axes."""
    return np.tril(x)


def symmetrised(x: Any) -> Any:
    """Mean of a square matrix and its transpose."""
    half = x.dtype.type(0.5)
    return (x + np.swapaxes(x, -1, -2)) * half


def mirrored(x: Any) -> Any:
    """Upper triangle of a square matrix and its mirror image: whole numbers stay whole, every bit is kept."""
    return np.triu(x) + np.swapaxes(np.triu(x, 1), -1, -2)


def probabilities(x: Any) -> Any:
    """Softmax along the last axis."""
    if x.size == 0:
        return x
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    powers /= np.sum(powers, axis=-1, keepdims=True)
    return powers


def signs(x: Any) -> Any:
    """1 where `x` is 0 or more, else -1."""
    return (2 * (x >= 0) - 1).astype(x.dtype)


# As written in `Array.init` before a draw in brackets: "triu(uniform(0,1))".
DRAWN: dict[str, Callable[[Any], Any]] = {
    "triu": upper,
    "tril": lower,
    "symmetric": symmetrised,
    "softmax": probabilities,
    "sign": signs,
}


def restored(x: Any, structure: str | None) -> Any:
    """`x`, whose numbers are a correctness case's, with the structure of a task's input again."""
    if structure is None:
        return x
    return mirrored(x) if structure == "symmetric" else DRAWN[structure](x)
