"""How far an output may be from the oracle, and which precision an error that is too large points to.

Two measures are bounded, both free of units: the norm error |seen - exact| / |exact|, and for each element
|seen_i - exact_i| / (|exact_i| + rms(exact)). The second lets no element hide among larger ones, the first no
systematic error that stays small everywhere; zeros score 1 on the first however small the output is.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from evaluator import _core
from evaluator.judge.accuracy import Accuracy, Array, Compare, Comparison
from evaluator.judge.conditioning import FEW_ERRORS
from evaluator.judge.expected import Expected
from evaluator.records import Outcome, ProgramFault, Rung

REFERENCE_FACTOR = 8.0  # a program may be this much worse than the float32 reference
FEW_FACTOR = 16.0  # where few elements are off: no average takes the edge off what one order of summation gives

# Where the class allows operands of eleven bits: so much worse than the reference, or than the exact values on operands
# so rounded, which says what a heavy tail or a cancellation makes of rounding. bfloat16 is eight times as coarse.
# In norm, rounding that costs more than COARSE_MOST excuses nothing. An element may be anything where a tanh follows a
# sum that cancels: 0 becomes 1 or -1.
COARSE_FACTOR = 4.0
COARSE_LEAST = 2.0**-10, 2.0**-8  # norm, element: for what is rounded between steps
COARSE_MOST = 2.0**-4, math.inf

# Relative spacing of each class: 23, 10 and 10 explicit bits. Half differs from TF32 in range alone.
SPACING = {"fp32": 2.0**-23, "tf32": 2.0**-10, "half": 2.0**-10}

# Spacings allowed beyond what the reference needs. Where an output folds many numbers: nearly twice the 293 spacings of
# a sum of 5,000 equal ones from left to right in one float32 accumulator, which nobody would call a loss of precision
# and which the calibration over `kernels/` (all of them split their sums: 8 spacings) does not show. 512 spacings are
# 6e-5; half precision and TF32 lie at 2e-4 and beyond.
N_EPS = {"elementwise": 16.0}
N_EPS_DEFAULT = 512.0


@dataclasses.dataclass(frozen=True)
class Bound:
    """What one output of one case may be off by."""

    norm: float
    element: float


EQUAL = Bound(norm=0.0, element=0.0)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One output measured against its bound."""

    output: int  # which output
    errors: Comparison
    bound: Bound

    @property
    def ok(self) -> bool:
        return self.errors.norm_error <= self.bound.norm and self.errors.element_error <= self.bound.element

    @property
    def excess(self) -> float:
        """Error over bound on the worse of the two measures; at most 1 where it passes."""
        return max(
            _ratio(self.errors.norm_error, self.bound.norm), _ratio(self.errors.element_error, self.bound.element)
        )


def factor_on(reference: Accuracy) -> float:
    """How many times the reference's own error a program of class fp32 may be off."""
    return FEW_FACTOR if reference.elements_off < FEW_ERRORS else REFERENCE_FACTOR


def bound_for(reference: Accuracy, family: str, precision: str) -> Bound:
    """The bound of one output of floats: a multiple of the reference's own error, or so many spacings if that is more.

    Below class fp32 operands may be rounded, once; sums are still float32.
    """
    spacings = N_EPS.get(family, N_EPS_DEFAULT) * SPACING["fp32"]
    own = reference.norm_error, reference.element_error
    if precision == "fp32":
        return Bound(*(max(factor_on(reference) * error, spacings) for error in own))
    rounded = reference.operand_norm_error, reference.operand_element_error
    limits = zip(own, rounded, COARSE_LEAST, COARSE_MOST, strict=True)
    return Bound(*(spacings + min(most, max(least, COARSE_FACTOR * max(errors))) for *errors, least, most in limits))


def bounds_of(expected: Expected, family: str, precision: str) -> list[Bound]:
    """The bound of every output; nothing may be off in integers, nor where any order of summation is exact.

    That asks for every bit of the operands, which classes below fp32 need not keep.
    """
    due = expected.sums_exact and precision == "fp32"
    return [
        EQUAL if due or not accuracy.dtype.startswith("float") else bound_for(accuracy, family, precision)
        for accuracy in expected.accuracies
    ]


def apart(difference: Comparison, bound: Bound) -> bool:
    """Whether two results of one input differ by more than their bounds allow, each being off to its own side."""
    return difference.norm_error > 2 * bound.norm or difference.element_error > 2 * bound.element


def measure(
    seen: Sequence[Array], expected: Expected, family: str, precision: str, compare: Compare = _core.compare
) -> list[Finding]:
    """Every output of a program against its bound, in order. `compare` is the device's.

    Raises ProgramFault `out_of_bounds` where the expected values are no longer what they were.
    """
    findings = []
    arrays = zip(seen, expected.exact, expected.accuracies, bounds_of(expected, family, precision), strict=True)
    for index, (array, exact, accuracy, bound) in enumerate(arrays):
        errors = compare(array, exact, accuracy.scale)
        if accuracy.digest is not None and accuracy.digest != getattr(errors, "digest", None):
            message = f"the expected values of output {index} changed in the memory of the judge"
            raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, message)
        findings.append(Finding(output=index, errors=errors, bound=bound))
    return findings


def precision_of(errors: Comparison) -> str:
    """Class that the norm error of an output speaks for: fp32, tf32 (half differs in range alone), bf16, or none."""
    if errors.norm_error <= 32 * SPACING["fp32"]:
        return "fp32"
    if errors.norm_error <= SPACING["half"]:
        return "half"
    return "bf16" if errors.norm_error <= 2.0**-7 else "none"


def outcome_of(errors: Comparison) -> Outcome:
    """`precision_downgrade` where an error too large looks like coarse rounding, else `wrong_value`.

    Rounding touches most elements, with errors of either sign: it is hardly aligned with the output. A wrong epsilon,
    scale or term of the same size is aligned with it, or sits in a few elements.
    """
    rounding = errors.share_off > 0.5 and abs(errors.alignment) < 0.5
    known = precision_of(errors) in ("half", "bf16") and errors.element_error <= 2.0**-6
    return Outcome.PRECISION_DOWNGRADE if rounding and known else Outcome.WRONG_VALUE


def describe(finding: Finding, case: str, seed: int, shape: tuple[int, ...]) -> str:
    """One line: worst element, seen, expected, bound."""
    errors = finding.errors
    place = [int(i) for i in np.unravel_index(errors.worst_index, shape)] if shape else []
    if errors.mismatched:
        allowed = f"{errors.mismatched} elements differ in being finite, NaN or infinite"
    elif finding.bound.element == 0.0:
        allowed = "equality expected (integers)"
    else:
        allowed = (
            f"error {errors.element_error:.2e} (norm {errors.norm_error:.2e}), "
            f"bound {finding.bound.element:.2e} (norm {finding.bound.norm:.2e})"
        )
    return (
        f"case {case}, seed {seed}, output {finding.output}{place}: seen {errors.worst_seen:.9g}, "
        f"expected {errors.worst_expected:.9g}; {allowed}"
    )


def _ratio(error: float, bound: float) -> float:
    if error == 0.0:
        return 0.0
    return error / bound if bound > 0.0 else float("inf")
