"""How far an output is from the exact values, and how far the reference itself is from them.

The arrays are NumPy's on the `cpu` device and CuPy's on `cuda`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Array = Any  # numpy.ndarray or cupy.ndarray


class Comparison(Protocol):
    """Errors of an output, as csrc/judging/compare.hpp defines them; `_core.Comparison` and the device's own fit."""

    @property
    def norm_error(self) -> float: ...
    @property
    def element_error(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def alignment(self) -> float: ...
    @property
    def share_off(self) -> float: ...
    @property
    def mismatched(self) -> int: ...
    @property
    def worst_index(self) -> int: ...
    @property
    def worst_seen(self) -> float: ...
    @property
    def worst_expected(self) -> float: ...


class Compare(Protocol):
    """Errors of an output. `scale`: of the exact values, where an earlier comparison found it; 0: not known."""

    def __call__(self, seen: Array, exact: Array, scale: float = 0.0, /) -> Comparison: ...


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """How far one output of the float32 reference is from the exact values. The reference's array is not kept.

    Where few elements are off, the largest errors on inputs moved by one spacing (`conditioning`).
    """

    norm_error: float
    element_error: float
    dtype: str  # of the output
    usable: bool  # finite wherever the exact value fits the type
    scale: float  # root mean square of the exact values, as `Comparison` has it
    elements_off: int  # all where none is: what the figures rest on
    digest: int | None = None  # of the exact values, where they lie in memory that a program may reach
    # Error of the exact values on operands rounded to TF32; 0 where the task's class asks for every bit of them.
    operand_norm_error: float = 0.0
    operand_element_error: float = 0.0


def accuracies(reference: Sequence[Array], exact: Sequence[Array], compare: Compare) -> tuple[Accuracy, ...]:
    """How far the reference at its own precision is from the exact values, output by output."""
    return tuple(_accuracy(one, other, compare) for one, other in zip(reference, exact, strict=True))


def with_operands(accuracy: Accuracy, near: Array, exact: Array, compare: Compare) -> Accuracy:
    """`accuracy`, with the error of `near`: the exact values on operands rounded to TF32."""
    errors = compare(near, exact)
    if not accuracy.dtype.startswith("float") or errors.mismatched:
        return accuracy
    return dataclasses.replace(
        accuracy, operand_norm_error=errors.norm_error, operand_element_error=errors.element_error
    )


def _accuracy(reference: Array, exact: Array, compare: Compare) -> Accuracy:
    errors = compare(reference, exact)
    usable = True
    if reference.dtype.kind == "f" and errors.mismatched:
        with np.errstate(over="ignore"):  # infinity is the right answer beyond the type's range
            usable = bool((np.isfinite(reference) | ~np.isfinite(exact.astype(reference.dtype))).all())
    return Accuracy(
        norm_error=errors.norm_error,
        element_error=errors.element_error,
        dtype=str(reference.dtype),
        usable=usable,
        scale=errors.scale,
        elements_off=round(errors.share_off * reference.size) or reference.size,
        digest=getattr(errors, "digest", None),
    )
