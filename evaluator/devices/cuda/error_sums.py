"""What the sums of `compare.cu` say together; the part of a comparison that the host does."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Errors:
    """As in csrc/judging/compare.hpp."""

    norm_error: float
    element_error: float
    alignment: float
    share_off: float
    mismatched: int
    worst_index: int


def scale(sums: np.ndarray) -> float | None:
    """Root mean square of the exact values that the type holds, from sums [blocks, 2]; None: squares overflowed."""
    squares, finite = (float(x) for x in sums.sum(axis=0))
    if not math.isfinite(squares):
        return None
    return max(math.sqrt(squares / finite) if finite else 0.0, smallest())


def smallest() -> float:
    """The least scale: the smallest normal float32."""
    return float(np.finfo(np.float32).tiny)


def combined(sums: np.ndarray, places: np.ndarray, count: int) -> Errors:
    """Errors of `count` elements, at least one, from sums [blocks, 6] and worst places [blocks]."""
    error_squares, exact_squares, product, off, mismatched = (float(x) for x in sums[:, :5].sum(axis=0))
    block = int(np.argmax(sums[:, 5]))
    norm_error, alignment = 0.0, 0.0
    if mismatched:
        norm_error = math.inf
    elif error_squares > 0:
        zeros = not exact_squares > 0  # an output of zeros has no norm of its own
        norm_error = math.sqrt(error_squares / (count if zeros else exact_squares))
        alignment = 0.0 if zeros else product / math.sqrt(error_squares * exact_squares)
    return Errors(
        norm_error=norm_error,
        element_error=float(sums[block, 5]),
        alignment=alignment,
        share_off=off / count,
        mismatched=int(mismatched),
        worst_index=int(places[block]),
    )
