"""What a case must give: exact values, and how well the reference itself reaches them at its own precision.

The arrays are NumPy's on the `cpu` device and CuPy's on `cuda`; what differs between them is handed in.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from evaluator.judge.conditioning import moved, steadied

FLOAT32_INTEGERS = 2.0**24  # every integer up to here is a float32, so sums below it are exact in any order

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


Forward = Callable[[Sequence[Array]], Sequence[Array]]
"""Inputs -> outputs of the reference, at the precision of the inputs."""


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


@dataclasses.dataclass(frozen=True)
class Expected:
    """One case of one task. The arrays are never written to."""

    inputs: tuple[Array, ...]  # inputs then parameters, dtypes as in the task
    exact: tuple[Array, ...]  # the reference on the same inputs in float64
    accuracies: tuple[Accuracy, ...]  # one an output
    sums_exact: bool = False  # any order of summation is exact in float32 here, so that equality is due

    @property
    def usable(self) -> bool:
        """Whether the reference stays finite wherever the exact result fits its type: else nobody could do better."""
        return all(accuracy.usable for accuracy in self.accuracies)

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in (*self.inputs, *self.exact))


def evaluate(
    inputs: Sequence[Array],
    forward: Forward,
    compare: Compare,
    *,
    integral: bool,
    coarse: bool = False,
    smaller: Callable[[], Sequence[Array]] | None = None,
    move: Callable[[Sequence[Array], int], Sequence[Array]] = moved,
) -> Expected:
    """What the reference gives on `inputs`. `integral`: they are integers, so look whether equality is due.

    `coarse`: the task's class allows operands of eleven bits, so measure what these cost. `smaller` draws inputs of the
    same kind but fewer elements: whether the reference is affine is then asked of those, since the answer takes a dozen
    arrays in float64. `move`: what `conditioning.moved` does, on the device of the inputs.
    """
    exact = exact_values(inputs, forward)
    found = accuracies(forward(inputs), exact, compare)
    if coarse:
        near = forward(widened([to_tf32(x) for x in inputs]))
        found = tuple(_with_operands(*each, compare) for each in zip(found, near, exact, strict=True))
        del near  # of gigabytes, perhaps
    sums_exact = False
    if integral and _whole(exact) and not any(one.norm_error for one in found):
        # With every operand's sign gone nothing cancels: this bounds every partial sum of a linear task.
        magnitudes = forward([np.abs(x) if x.dtype == np.float64 else x for x in widened(inputs)])
        bounded = all(x.size == 0 or float(np.max(np.abs(x))) < FLOAT32_INTEGERS for x in magnitudes)
        del magnitudes
        sums_exact = bounded and _affine(forward, smaller() if smaller else inputs)
    if not sums_exact:
        found = steadied(found, lambda draw: accuracies(forward(move(inputs, draw)), exact, compare))
    return Expected(tuple(inputs), tuple(exact), found, sums_exact)


def exact_values(inputs: Sequence[Array], forward: Forward) -> list[Array]:
    """The reference in float64."""
    return [x.astype(np.float64, copy=False) for x in forward(widened(inputs))]


def accuracies(reference: Sequence[Array], exact: Sequence[Array], compare: Compare) -> tuple[Accuracy, ...]:
    """How far the reference at its own precision is from the exact values, output by output."""
    return tuple(_accuracy(one, other, compare) for one, other in zip(reference, exact, strict=True))


def widened(inputs: Sequence[Array]) -> list[Array]:
    """The same with floats in float64."""
    return [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]


def to_tf32(x: Array) -> Array:
    """float32 to the nearest of eleven significant bits, ties to even; other types as they are."""
    if x.dtype != np.float32:
        return x
    bits = x.view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & 0xFFFFE000).view(np.float32)


def _with_operands(accuracy: Accuracy, near: Array, exact: Array, compare: Compare) -> Accuracy:
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


def _affine(forward: Forward, inputs: Sequence[Array]) -> bool:
    """Whether f(x) + f(0) = f(w x) + f(x - w x) in the first array, w in [0, 1) (tanh is integral by saturation)."""
    wide = widened(inputs)
    first = next((i for i, x in enumerate(wide) if x.dtype == np.float64), None)
    if first is None:
        return False
    # The same weights each time, on every device.
    weights = np.sin(np.arange(wide[first].size, like=wide[first]) * 12.9898) % 1.0

    def at(x: Array) -> Sequence[Array]:
        return forward([*wide[:first], x, *wide[first + 1 :]])

    part = wide[first] * weights.reshape(wide[first].shape)
    sums = zip(at(wide[first]), at(part * 0), at(part), at(wide[first] - part), strict=True)
    return all(bool(np.allclose(whole + zero, one + other, rtol=1e-9, atol=1e-6)) for whole, zero, one, other in sums)


def _whole(arrays: Sequence[Array]) -> bool:
    return all(bool((x == np.rint(x)).all()) for x in arrays)
