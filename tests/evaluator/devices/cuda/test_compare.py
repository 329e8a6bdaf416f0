"""The device's comparison, run on the emulator, says what `_core.compare` says."""

import math
from pathlib import Path

import numpy as np
import pytest

from evaluator import _core
from evaluator.devices.cuda import error_sums

SOURCE = (Path(error_sums.__file__).with_name("compare.cu")).read_text()
BLOCKS = 3


def draw(kind):
    rng = np.random.default_rng(7)
    exact = rng.normal(size=5000) * np.exp(3 * rng.normal(size=5000))
    seen = (exact * (1 + 1e-6 * rng.normal(size=5000))).astype(np.float32)
    if kind == "zeros":
        exact = np.zeros(5000)
        seen = (1e-9 * rng.normal(size=5000)).astype(np.float32)
    elif kind == "classes":
        exact[[3, 70, 4000]] = np.nan, np.inf, -np.inf
        seen = exact.astype(np.float32)
        seen[[9, 70]] = np.nan, -np.inf
    elif kind == "out of range":
        exact[5] = 1e300  # infinity is right there
        seen[5] = np.inf
    elif kind == "equal":
        exact = seen.astype(np.float64)
    return seen, exact


def error_outputs(out):
    return out((BLOCKS, 6), "float64"), out((BLOCKS,), "int64"), out((BLOCKS,), "uint64")


@pytest.mark.parametrize("kind", ["rounding", "zeros", "classes", "out of range", "equal"])
def test_errors_are_those_of_the_host(outputs_of, out, kind):
    seen, exact = draw(kind)
    largest = float(np.finfo(np.float32).max)
    launch = {"grid": (BLOCKS,), "block": (256,)}
    limits = [seen.size, np.float64(largest)]
    arguments = [exact, *limits, out((BLOCKS, 2), "float64")]
    (sums,) = outputs_of(SOURCE, arguments, kernel="scale_sums<double>", **launch)
    scale = error_sums.scale(sums)
    arguments = [seen, exact, *limits, np.float64(1 / scale), *error_outputs(out)]
    parts, places, _ = outputs_of(SOURCE, arguments, kernel="error_sums<float, double>", **launch)
    ours, theirs = error_sums.combined(parts, places, seen.size), _core.compare(seen, exact)
    assert scale == pytest.approx(theirs.scale, rel=1e-12)
    assert (ours.mismatched, ours.share_off) == (theirs.mismatched, theirs.share_off)
    for name in ("norm_error", "element_error", "alignment"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9, abs=1e-15), name
    if math.isfinite(ours.element_error) and ours.element_error > 0:
        assert ours.worst_index == theirs.worst_index


def test_another_result_in_float32_stands_for_its_values(outputs_of, out):
    seen, exact = draw("rounding")
    other = exact.astype(np.float32)
    limits = [seen.size, np.float64(math.inf)]

    def sums_with(values, name):
        launch = {"grid": (BLOCKS,), "block": (256,)}
        arguments = [values, *limits, out((BLOCKS, 2), "float64")]
        (scales,) = outputs_of(SOURCE, arguments, kernel=f"scale_sums<{name}>", **launch)
        arguments = [seen, values, *limits, np.float64(0.5), *error_outputs(out)]
        parts, places, _ = outputs_of(SOURCE, arguments, kernel=f"error_sums<float, {name}>", **launch)
        return scales, parts, places

    for narrow, wide in zip(sums_with(other, "float"), sums_with(other.astype(np.float64), "double"), strict=True):
        np.testing.assert_array_equal(narrow, wide)


@pytest.mark.parametrize("name", ["float", "double"])
def test_any_changed_bit_or_exchanged_pair_changes_the_digest(outputs_of, out, name):
    values = draw("rounding")[1].astype({"float": np.float32, "double": np.float64}[name])

    def digest(array):
        seen, limits = array.astype(np.float32), (np.float64(math.inf), np.float64(1.0))
        arguments = [seen, array, array.size, *limits, *error_outputs(out)]
        *_, parts = outputs_of(SOURCE, arguments, kernel=f"error_sums<float, {name}>", grid=(BLOCKS,), block=(256,))
        return int(parts.sum())

    changed, exchanged = values.copy(), values.copy()
    changed.view(np.uint8)[17] ^= 1
    exchanged[[4, 900]] = exchanged[[900, 4]]
    assert digest(values) == digest(values.copy())
    assert len({digest(values), digest(changed), digest(exchanged)}) == 3


def test_equal_elements_are_counted(outputs_of, out):
    bits = np.arange(3000, dtype=np.uint32) % 7
    arguments = [bits, bits.size, np.uint32(3), out((BLOCKS,), "float64")]
    (sums,) = outputs_of(SOURCE, arguments, kernel="equal_counts<unsigned int>", grid=(BLOCKS,), block=(256,))
    assert sums.sum() == np.count_nonzero(bits == 3)


@pytest.mark.parametrize("change", [None, 0, 17, 999])
def test_bytes_that_are_no_longer_what_was_written_are_counted(run_kernel, change):
    bits = np.full(1000, 0xA5, np.uint8)
    if change is not None:
        bits[change] = 0
    arguments = [bits, bits.size, np.uint8(0xA5), np.zeros(1, np.uint32)]
    report = run_kernel(SOURCE, arguments, kernel="count_changed", grid=(BLOCKS,), block=(256,))
    assert report.modified == (() if change is None else ("x1",))  # the counter


SEALING = r"""
extern "C" __global__ void places(long long* out, unsigned long long seed, long long count) {
  out[threadIdx.x] = secret_place(seed, threadIdx.x, count);
}
"""


def test_sealed_places_are_spread_by_the_seed(outputs_of, out):
    def places(seed):
        arguments = [out((16,), "int64"), np.uint64(seed), 5000]
        return outputs_of(SOURCE + SEALING, arguments, kernel="places", grid=(1,), block=(16,))[0]

    assert len(set(places(1))) >= 14
    assert not set(places(1)) & set(places(2))
    assert 0 <= places(3).min() <= places(3).max() < 5000


@pytest.mark.parametrize("kind", ["unsigned short", "unsigned int", "unsigned long long"])
def test_seals_touch_few_elements_and_those_that_nobody_wrote_are_counted(run_kernel, out, kind):
    dtype = {"unsigned short": "uint16", "unsigned int": "uint32", "unsigned long long": "uint64"}[kind]
    word = np.dtype(dtype).type(0xBEEF)
    launch = {"grid": (1,), "block": (16,)}
    arguments = [out((5000,), dtype), 5000, np.uint64(7), word]
    report = run_kernel(SOURCE, arguments, kernel=f"seal<{kind}>", **launch)
    (sealed,) = report.outputs
    assert 14 <= np.count_nonzero(sealed == word) == 5000 - report.unwritten[0] <= 16
    one_left, none_left = np.zeros_like(sealed), np.zeros_like(sealed)
    one_left[np.flatnonzero(sealed == word)[-1]] = word
    for bits, counted in ((sealed, True), (one_left, True), (none_left, False)):
        arguments = [bits, bits.size, np.uint64(7), word, np.zeros(1, np.uint32)]
        report = run_kernel(SOURCE, arguments, kernel=f"count_sealed<{kind}>", **launch)
        assert report.modified == (("x1",) if counted else ())  # the counter


@pytest.mark.parametrize("change", [None, 0, 17, 999])
def test_any_byte_that_differs_is_seen(outputs_of, out, change):
    one = np.random.default_rng(1).integers(0, 256, 1000, np.uint8)
    other = one.copy()
    if change is not None:
        other[change] ^= 1
    arguments = [one, other, one.size, out((BLOCKS,), "float64")]
    (sums,) = outputs_of(SOURCE, arguments, kernel="different_bytes", grid=(BLOCKS,), block=(256,))
    assert (sums.sum() > 0) == (change is not None)
