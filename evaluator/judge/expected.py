"""What a case must give: exact values, and how well the reference itself reaches them at its own precision."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from evaluator import _core


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """How far one output of the float32 reference is from the exact values. The reference's array is not kept."""

    norm_error: float
    element_error: float
    dtype: str  # of the output
    usable: bool  # finite wherever the exact value fits the type


@dataclasses.dataclass(frozen=True)
class Expected:
    """One case of one task. The arrays are never written to."""

    inputs: tuple[np.ndarray, ...]  # inputs then parameters, dtypes as in the task
    exact: tuple[np.ndarray, ...]  # the reference on the same inputs in float64
    accuracies: tuple[Accuracy, ...]  # one an output
    integral: bool = False  # any order of summation is exact in float32 here, so that equality is due

    @property
    def usable(self) -> bool:
        """Whether the reference stays finite wherever the exact result fits its type: else nobody could do better."""
        return all(accuracy.usable for accuracy in self.accuracies)

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in (*self.inputs, *self.exact))


def accuracies(reference: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> tuple[Accuracy, ...]:
    """How far the reference at its own precision is from the exact values, output by output."""
    return tuple(map(_accuracy, reference, exact))


def _accuracy(reference: np.ndarray, exact: np.ndarray) -> Accuracy:
    errors = _core.compare(np.ascontiguousarray(reference), exact)
    usable = True
    if np.issubdtype(reference.dtype, np.floating):
        with np.errstate(over="ignore"):  # infinity is the right answer beyond the type's range
            usable = bool(np.all(np.isfinite(reference) | ~np.isfinite(exact.astype(reference.dtype))))
    return Accuracy(errors.norm_error, errors.element_error, str(reference.dtype), usable)
