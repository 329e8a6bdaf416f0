"""What a case must give: exact values, and how well the reference itself reaches them at its own precision.

What differs between NumPy's arrays and CuPy's is handed in.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from evaluator.judge.accuracy import Accuracy, Array, Compare, accuracies, with_operands
from evaluator.judge.conditioning import moved, steadied

FLOAT32_INTEGERS = 2.0**24  # every integer up to here is a float32, so sums below it are exact in any order

Forward = Callable[[Sequence[Array]], Sequence[Array]]
"""Inputs -> outputs of the reference, at the precision of the inputs."""


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
        found = tuple(with_operands(*each, compare) for each in zip(found, near, exact, strict=True))
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


def widened(inputs: Sequence[Array]) -> list[Array]:
    """The same with floats in float64."""
    return [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]


def to_tf32(x: Array) -> Array:
    """float32 to the nearest of eleven significant bits, ties to even; other types as they are."""
    if x.dtype != np.float32:
        return x
    bits = x.view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & 0xFFFFE000).view(np.float32)


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
