"""Symbolic indexing selects the elements that NumPy selects, wherever they are contiguous."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.program.tracer.indexing import contiguous_strides, is_contiguous, select


@pytest.mark.parametrize(
    ("shape", "key", "offset", "result"),
    [
        ((6, 4), 2, 8, (4,)),
        ((6, 4), -1, 20, (4,)),
        ((6, 4), slice(1, 3), 4, (2, 4)),
        ((6, 4), (2, slice(1, 3)), 9, (2,)),
        ((6, 4), (slice(2, 3), slice(1, 3)), 9, (1, 2)),
        ((6, 4), (5, 3), 23, ()),
        ((6, 4), Ellipsis, 0, (6, 4)),
        ((6, 4), (Ellipsis, slice(None)), 0, (6, 4)),
        ((6, 1), (slice(2, 5), 0), 2, (3,)),
        ((6, 4), slice(4, 2), 0, (0, 4)),
        ((6, 4), slice(100, 200), 0, (0, 4)),
        ((0, 4), slice(None), 0, (0, 4)),
        ((), (), 0, ()),
        ((), Ellipsis, 0, ()),
    ],
)
def test_a_contiguous_selection_is_an_offset_and_a_shape(shape, key, offset, result):
    assert select(shape, key) == (offset, result)


@pytest.mark.parametrize(
    ("shape", "key", "error"),
    [
        ((6, 4), (slice(None), 1), ValueError),
        ((6, 4), (slice(None), slice(0, 2)), ValueError),
        ((6, 4), slice(None, None, 2), ValueError),
        ((6, 4), slice(None, None, -1), ValueError),
        ((6, 4), 6, IndexError),
        ((6, 4), -7, IndexError),
        ((6, 4), (0, 0, 0), IndexError),
        ((6, 4), (Ellipsis, Ellipsis), IndexError),
        ((), 0, IndexError),
        ((6, 4), 1.0, TypeError),
        ((6, 4), True, TypeError),
        ((6, 4), slice(0.0, 1), TypeError),
        ((6, 4), "a", TypeError),
    ],
)
def test_anything_else_raises(shape, key, error):
    with pytest.raises(error):
        select(shape, key)


ENTRIES = st.integers(-5, 5) | st.slices(5) | st.just(Ellipsis)


@settings(max_examples=200, deadline=None)
@given(shape=st.lists(st.integers(0, 4), max_size=4).map(tuple), key=st.lists(ENTRIES, max_size=4).map(tuple))
def test_selection_agrees_with_numpy(shape, key):
    elements = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    try:
        expected = elements[key]
    except IndexError:
        with pytest.raises((IndexError, ValueError)):
            select(shape, key)
        return
    try:
        offset, result = select(shape, key)
    except ValueError:
        # Refused: a step, which is refused even where one element makes it contiguous, or no contiguous run.
        assert not expected.flags.c_contiguous or any(isinstance(e, slice) and e.step not in (None, 1) for e in key)
        return
    assert result == expected.shape
    flat = np.arange(offset, offset + expected.size)
    np.testing.assert_array_equal(np.ravel(expected), flat)


@given(st.lists(st.integers(0, 3), max_size=4).map(tuple), st.data())
def test_contiguity_agrees_with_numpy(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    turned = np.zeros(shape).transpose(order)
    strides = contiguous_strides(shape)
    seen = is_contiguous(turned.shape, tuple(strides[axis] for axis in order))
    assert seen == turned.flags.c_contiguous
