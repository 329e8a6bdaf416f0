"""Comparison of outputs with the float64 oracle."""

import numpy as np
import pytest

from evaluator import _core

INF, NAN = float("inf"), float("nan")


def test_errors_by_hand():
    # rms of (3, 4) is sqrt(12.5); the error 0.5 sits on 4.
    found = _core.compare(np.array([3.0, 4.5], np.float32), np.array([3.0, 4.0]))
    assert found.scale == pytest.approx(12.5**0.5)
    assert found.norm_error == pytest.approx(0.5 / 5.0)
    assert found.element_error == pytest.approx(0.5 / (4.0 + 12.5**0.5))
    assert (found.worst_index, found.worst_seen, found.worst_expected) == (1, 4.5, 4.0)
    assert found.share_off == 0.5


@pytest.mark.parametrize("magnitude", [1e-30, 1e-6, 1.0, 1e6, 1e30])
def test_measures_have_no_unit(magnitude):
    exact = np.array([1.0, -2.0, 3.0]) * magnitude
    seen = (exact * 1.001).astype(np.float32)
    found = _core.compare(seen, exact)
    assert found.norm_error == pytest.approx(1e-3, rel=1e-3)
    assert found.alignment == pytest.approx(1.0, rel=1e-5)


def test_zeros_are_wholly_wrong_however_small_the_output():
    assert _core.compare(np.zeros(5, np.float32), np.full(5, 1e-20)).norm_error == pytest.approx(1.0)


def test_an_error_in_one_small_element_is_seen_beside_large_ones():
    exact = np.ones(10_000)
    seen = np.ones(10_000, np.float32)
    seen[77] = 0.99
    found = _core.compare(seen, exact)
    assert found.worst_index == 77
    assert found.element_error == pytest.approx(0.005, rel=1e-3)
    assert found.norm_error == pytest.approx(1e-4, rel=1e-3)  # the norm alone would let it pass


@pytest.mark.parametrize(
    ("seen", "exact", "mismatched"),
    [
        ([NAN, INF, -INF, 1.0], [NAN, INF, -INF, 1.0], 0),
        ([1.0, 1.0], [NAN, 1.0], 1),
        ([NAN, 1.0], [1.0, 1.0], 1),
        ([INF], [-INF], 1),
        ([NAN], [INF], 1),
        ([3e38], [INF], 1),
        ([INF], [1e39], 0),  # the exact value is beyond float32, so infinity is the right answer
    ],
)
def test_nan_and_infinity_must_match_in_place(seen, exact, mismatched):
    found = _core.compare(np.array(seen, np.float32), np.array(exact))
    assert found.mismatched == mismatched
    assert np.isinf(found.element_error) == bool(mismatched)
    assert np.isinf(found.norm_error) == bool(mismatched)


def test_an_exact_output_of_zeros_asks_for_zeros():
    assert _core.compare(np.zeros(3, np.float32), np.zeros(3)).norm_error == 0.0
    assert _core.compare(np.array([0, 1e-30, 0], np.float32), np.zeros(3)).norm_error > 1e-4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("size", [0, 1, 7])
def test_every_output_type_is_read_as_it_is(dtype, size):
    seen = np.arange(size).astype(dtype)
    found = _core.compare(seen, seen.astype(np.float64))
    assert found.element_error == 0.0
    assert found.worst_index == (0 if size else -1)


def test_half_bits_decode_as_numpy_does():
    bits = np.arange(1 << 16, dtype=np.uint16)
    found = _core.compare(bits.view(np.float16), bits.view(np.float16).astype(np.float64))
    assert (found.mismatched, found.element_error) == (0, 0.0)


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (np.zeros(4, np.float32), "seen 4 elements, expected 3"),
        (np.zeros(3, np.complex64), "type complex64"),
        (np.zeros(6, np.float32)[::2], "contiguous"),
    ],
)
def test_unreadable_outputs_are_refused(seen, message):
    with pytest.raises(ValueError, match=message):
        _core.compare(seen, np.zeros(3))


@pytest.mark.parametrize("size", [511, 512, 513, 1024, 2000])
@pytest.mark.parametrize("place", [0, 5, 510, -1])
def test_blocks_of_ordinary_numbers_give_what_single_elements_do(size, place):
    rng = np.random.default_rng(size)
    exact = rng.standard_normal(size)
    seen = exact.astype(np.float32)
    seen[place] += np.float32(0.5)
    found = _core.compare(seen, exact)
    wide = seen.astype(np.float64)
    scale = np.sqrt(np.mean(exact**2))
    assert found.norm_error == pytest.approx(np.linalg.norm(wide - exact) / np.linalg.norm(exact))
    assert found.element_error == pytest.approx(np.max(np.abs(wide - exact) / (np.abs(exact) + scale)))
    assert found.worst_index == place % size
    assert found.share_off == pytest.approx(np.mean(wide != exact))
    cosine = np.dot(wide - exact, exact) / np.linalg.norm(wide - exact) / np.linalg.norm(exact)
    assert found.alignment == pytest.approx(cosine, abs=1e-9)


@pytest.mark.parametrize("place", [0, 511, 512, 1500, 1999])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_one_bad_element_among_many_is_found_where_it_is(place, value):
    exact = np.linspace(1, 2, 2000)
    seen = exact.astype(np.float32)
    seen[place] = value
    found = _core.compare(seen, exact)
    assert (found.mismatched, found.worst_index, found.worst_expected) == (1, place, exact[place])


def test_float64_outputs_of_any_magnitude_have_a_scale():
    exact = np.array([1e300, -2e300])
    assert _core.compare(exact, exact).scale == pytest.approx(np.sqrt(2.5) * 1e300)
