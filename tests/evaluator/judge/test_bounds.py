"""Bounds and precision classes, on outputs whose faults are made by hand."""

import types

import numpy as np
import pytest

from evaluator import _core
from evaluator.judge.accuracy import accuracies
from evaluator.judge.bounds import bounds_of, describe, measure, outcome_of, precision_of
from evaluator.judge.expected import Expected, evaluate
from evaluator.records import Outcome, ProgramFault

RNG = np.random.default_rng(7)
EXACT = RNG.standard_normal((64, 100))


def expected(exact=EXACT, reference=None, sums_exact=False):
    low = exact.astype(np.float32) if reference is None else reference
    return Expected(
        inputs=(), exact=(exact,), accuracies=accuracies([low], [exact], _core.compare), sums_exact=sums_exact
    )


def finding(seen, **kwargs):
    return measure([np.asarray(seen, np.float32)], expected(**kwargs), "elementwise", "fp32")[0]


def test_float32_rounding_passes():
    assert finding(EXACT * (1 + 2.0**-23 * RNG.uniform(-4, 4, EXACT.shape))).ok


@pytest.mark.parametrize("offset", [1e-5, 1e-3, 1.0])
def test_a_single_wrong_element_fails(offset):
    seen = EXACT.copy()
    seen[3, 4] += offset
    found = finding(seen)
    assert not found.ok
    assert found.errors.worst_index == 304


def test_a_bound_grows_with_the_error_of_the_reference_itself():
    noisy = (EXACT * (1 + 1e-3 * RNG.standard_normal(EXACT.shape))).astype(np.float32)
    seen = EXACT * (1 + 1e-3 * RNG.standard_normal(EXACT.shape))
    assert finding(seen, reference=noisy).ok
    assert not finding(seen).ok


def test_outputs_must_be_equal_where_sums_are_exact():
    exact = np.arange(12.0)
    assert finding(exact, exact=exact, sums_exact=True).ok
    off = finding(exact + np.eye(1, 12, 5)[0] * 1e-6 * 5, exact=exact, sums_exact=True)
    assert not off.ok
    assert "equality expected" in describe(off, "integers", 1, (12,))


def test_equality_is_not_asked_of_a_class_that_may_round_its_operands():
    exact = np.arange(12.0)
    answer = expected(exact=exact, sums_exact=True)
    seen = [np.asarray(exact * (1 + 2.0**-12), np.float32)]
    assert measure(seen, answer, "convolution", "tf32")[0].ok
    assert not measure(seen, answer, "convolution", "fp32")[0].ok


def test_indices_must_be_equal():
    indices = np.arange(6)
    answer = expected(exact=indices.astype(float), reference=indices)
    assert measure([indices], answer, "reduction", "fp32")[0].ok
    assert not measure([indices + np.eye(1, 6, 2, dtype=int)[0]], answer, "reduction", "fp32")[0].ok


@pytest.mark.parametrize(
    ("cast", "name"),
    [
        (lambda x: x.astype(np.float16).astype(np.float32), "half"),
        (lambda x: (x.astype(np.float32).view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32), "bf16"),
        (lambda x: (x.astype(np.float32).view(np.uint32) + 0x1000 & 0xFFFFE000).view(np.float32), "half"),
    ],
    ids=["half", "bfloat16", "tf32"],
)
def test_coarse_rounding_is_a_precision_downgrade(cast, name):
    found = finding(cast(EXACT))
    assert not found.ok
    assert precision_of(found.errors) == name
    assert outcome_of(found.errors) is Outcome.PRECISION_DOWNGRADE


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x * 1.0005,  # an epsilon or a scale that is off: as small as half's rounding, but of one sign
        lambda x: x + 3e-4,
        lambda x: np.where(np.arange(100) == 99, 0, x),  # stale tail
        lambda x: np.zeros_like(x),
        lambda x: np.abs(x),
        lambda x: np.roll(x, 1),
    ],
    ids=["scale", "offset", "tail", "zeros", "sign", "shift"],
)
def test_systematic_errors_are_wrong_values(wrong):
    exact = EXACT + 2.0  # an offset is aligned with an output that has a mean
    found = finding(wrong(exact), exact=exact)
    assert not found.ok
    assert outcome_of(found.errors) is Outcome.WRONG_VALUE


def test_nan_is_never_a_wildcard():
    assert not finding(np.full(EXACT.shape, np.nan)).ok
    assert finding([np.nan, 1.0], exact=np.array([np.nan, 1.0])).ok


def test_a_task_of_lower_class_allows_its_rounding():
    half = EXACT.astype(np.float16).astype(np.float32)
    assert measure([half], expected(), "matmul", "tf32")[0].ok
    assert not measure([half], expected(), "matmul", "fp32")[0].ok


def test_the_message_names_place_values_and_bound():
    seen = EXACT.copy()
    seen[3, 4] = 9.0
    text = describe(finding(seen), "negated", 5, EXACT.shape)
    assert text.startswith(f"case negated, seed 5, output 0[3, 4]: seen 9, expected {EXACT[3, 4]:.9g}; error ")
    assert "bound 1.91e-06" in text  # 16 spacings of float32


@pytest.mark.parametrize("shape", [(), (0,), (1,)])
def test_empty_and_scalar_outputs(shape):
    exact = np.ones(shape)
    found = finding(exact, exact=exact)
    assert found.ok
    assert bounds_of(expected(exact=exact), "loss", "fp32")[0].norm > 0


def product(left, right):
    """The expected values of a product whose class is tf32, with what rounding its operands costs."""

    return evaluate([left, right], lambda arrays: [arrays[0] @ arrays[1]], _core.compare, integral=False, coarse=True)


def shortened(x, bits):
    """float32 with so few bits behind the point."""
    drop = 23 - bits
    return ((x.view(np.uint32) + (1 << drop - 1)) & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)).view(np.float32)


@pytest.mark.parametrize("tail", [0.0, 3.0])
def test_the_lower_class_allows_operands_of_eleven_bits_and_not_of_eight(tail):
    left, right = (RNG.standard_normal(shape).astype(np.float32) for shape in ((48, 81), (81, 64)))
    left *= np.exp(tail * RNG.standard_normal(left.shape)).astype(np.float32)  # a few elements carry each sum
    answer = product(left, right)

    def ok(bits):
        seen = (shortened(left, bits).astype(np.float64) @ shortened(right, bits)).astype(np.float32)
        return measure([seen], answer, "convolution", "tf32")[0].ok

    assert ok(10)
    assert not ok(7)


def test_expected_values_that_changed_are_a_fault_of_memory():
    def compare(seen, exact, scale=0.0):
        errors = _core.compare(seen, exact, scale)
        fields = ("norm_error", "element_error", "scale", "mismatched", "share_off", "alignment", "worst_index")
        digest = int(exact.view(np.uint64).sum())
        return types.SimpleNamespace(**{name: getattr(errors, name) for name in fields}, digest=digest)

    exact, low = EXACT.copy(), EXACT.astype(np.float32)
    answer = Expected(inputs=(), exact=(exact,), accuracies=accuracies([low], [exact], compare))
    assert measure([low], answer, "elementwise", "fp32", compare)[0].ok
    exact[3, 4] = low[3, 4] = 7.0
    with pytest.raises(ProgramFault, match="the expected values of output 0 changed"):
        measure([low], answer, "elementwise", "fp32", compare)


def test_rounding_that_ruins_the_result_is_no_excuse():
    left = np.array([[1e4, -1e4 + 0.3]], np.float32)
    answer = product(left, np.ones((2, 1), np.float32))
    assert answer.accuracies[0].operand_norm_error > 0.5
    assert not measure([np.array([[0.2]], np.float32)], answer, "convolution", "tf32")[0].ok
