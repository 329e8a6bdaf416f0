"""How far the reference is off where that is a matter of luck: on outputs of a few elements, errors may cancel.

A mean of differences near a margin is one number, and the reference may hit it ten times better than its own rounding
lets it expect. So it is tried on inputs that differ by one spacing, which no program of its precision can be asked to
tell apart, and the largest error counts. Outputs of many elements are averages already.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evaluator.judge.accuracy import Accuracy, Array

FEW_ERRORS = 64  # the root mean square of so many is within a third of what it would be of all there are

# Of a reference with errors of size s, the largest of 17 is hardly ever below s, and as a rule 2 s. `bounds` allows 16
# times that: a program whose errors are six times as large (one accumulator from left to right where the reference adds
# pairs) is beyond it in one case of 10,000 that cancel. Beyond 8 times a single error it would be in four of ten.
MOST_DRAWS = 16
# A reference that stays below one spacing in its first draws is no matter of luck: every class allows 16 and more. Two
# draws are too few: where one term is left, its errors come in steps, and the same one three times over was seen.
FIRST_DRAWS = 4
SETTLED = 2.0**-23
MEANINGLESS = 2.0**-5  # no bound that follows from it lets zeros pass; where nothing is left, errors are of any size


def steadied(found: Sequence[Accuracy], again: Callable[[int], Sequence[Accuracy]]) -> tuple[Accuracy, ...]:
    """`found`, with the largest errors of several draws for outputs where few elements are off.

    `again(draw)` says how far the reference on inputs moved by `draw` is from the exact values of the original inputs.
    """
    few = [one.dtype.startswith("float") and one.elements_off < FEW_ERRORS for one in found]
    steady = tuple(found)
    if not any(few):
        return steady
    for draw in range(1, 1 + MOST_DRAWS):
        steady = tuple(
            _larger(one, other) if lucky else one for one, other, lucky in zip(steady, again(draw), few, strict=True)
        )
        if draw >= FIRST_DRAWS and all(
            max(one.norm_error, one.element_error) <= SETTLED for one, lucky in zip(steady, few, strict=True) if lucky
        ):
            break
    return steady


def moved(inputs: Sequence[Array], draw: int) -> list[Array]:
    """Each float of `inputs` one spacing up or down, as `draw` and its place say; zeros and other types as they are."""
    return [_moved(x, (number << 16) + draw) if x.dtype.kind == "f" else x for number, x in enumerate(inputs)]


def _moved(x: Any, stream: int) -> Any:
    bits = np.arange(x.size, dtype=np.uint32, like=x)
    bits += np.uint32(stream * 0x9E3779B9 & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):  # a hash: neighbours move independently
        bits ^= bits >> np.uint32(shift)
        bits *= np.uint32(factor)
    spacing = x.dtype.type(np.finfo(x.dtype).eps)
    factors = (bits >> np.uint32(31)).astype(x.dtype).reshape(x.shape)
    factors *= 2 * spacing
    factors += 1 - spacing
    factors *= x
    return factors


def _larger(one: Accuracy, other: Accuracy) -> Accuracy:
    """`one` with the larger errors of both; an `other` that overflows, or makes something of nothing, says nothing."""
    if not other.norm_error < MEANINGLESS:
        return one
    norm_error, element_error = max(one.norm_error, other.norm_error), max(one.element_error, other.element_error)
    return dataclasses.replace(one, norm_error=norm_error, element_error=element_error)
