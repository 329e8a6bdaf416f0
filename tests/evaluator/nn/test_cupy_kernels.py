"""The kernels of `cupy_nn` over the shapes that take another path each, and their texts under NVRTC."""

import jax
import numpy as np
import pytest

from evaluator.nn import jax_nn


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def agrees(seen, name, *arguments, **keywords):
    """True where `seen` has shape and values of `jax_nn` in float64; else AssertionError that shows them."""
    with jax.enable_x64(True):
        wide = [x.astype(np.float64) if isinstance(x, np.ndarray) else x for x in arguments]
        expected = np.asarray(getattr(jax_nn, name)(*wide, **keywords))
    assert seen.shape == expected.shape
    scale = np.abs(expected).max() if expected.size else 1
    np.testing.assert_allclose(np.asarray(seen), expected, rtol=2e-5, atol=2e-6 * scale)
    return True


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (4,), (1027,), (4096,), (33, 129), (2, 3, 4, 5)])
def test_elementwise_functions_take_any_shape(cupy_nn, on_device, shape):
    x = normal(*shape)
    assert agrees(cupy_nn.tanh(on_device(x)), "tanh", x)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((6, 8), (6, 1)),  # four neighbours share the right operand
        ((6, 7), (6, 1)),  # a row is no multiple of four
        ((6, 8), (8,)),
        ((6, 7), (7,)),
        ((2, 3, 8, 4), (3, 1, 1)),  # a bias per channel
        ((5, 1, 4), (1, 3, 4)),
        ((5, 1), (1, 4)),
        ((7,), ()),
        ((300, 1), (1, 40)),
    ],
)
def test_operators_broadcast(cupy_nn, on_device, left, right):
    x, y = normal(*left), normal(*right, seed=1)
    np.testing.assert_allclose(np.asarray(on_device(x) - on_device(y)), x - y, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(on_device(y) / on_device(x)), y / x, rtol=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2],
        lambda x: x[1:, 1:],  # rows that start off a 16-byte boundary
        lambda x: x.T,
        lambda x: x[::-1, ::-1],
        lambda x: x.reshape(2, -1, 12).transpose(2, 0, 1),
        lambda x: x[:, None, 3],
    ],
)
def test_views_are_read_where_they_lie(cupy_nn, on_device, view):
    x = normal(10, 24)
    np.testing.assert_allclose(np.asarray(cupy_nn.relu(view(on_device(x)))), np.maximum(view(x), 0))
    assert agrees(cupy_nn.sum(view(on_device(x)), 0), "sum", np.ascontiguousarray(view(x)), 0)


FOLDS = ["sum", "argmax", "var", "logsumexp"]  # an accumulator of one number, and of each other kind
EXTENTS = [
    ((300, 20), 1),  # a warp per row, several rows a block
    ((3, 1000), 1),  # a block per row, 16-byte loads
    ((3, 1001), 1),  # and 4-byte loads
    ((2, 20000), 1),  # rows that are split
    ((20001,), 0),
    ((3, 50, 70), 1),  # columns
    ((2, 700, 33), 1),  # columns that are split
    ((1, 300, 1), 1),
    ((4, 20, 70000), 1),  # many short columns: a thread each
    ((3, 7, 5, 9), -2),
]


@pytest.mark.parametrize(("shape", "dim"), EXTENTS)
@pytest.mark.parametrize("name", FOLDS)
def test_folds_over_rows_and_columns(cupy_nn, on_device, name, shape, dim):
    x = normal(*shape)
    assert agrees(getattr(cupy_nn, name)(on_device(x), dim=dim), name, x, dim=dim)


@pytest.mark.parametrize("dims", [(0, 2), (0, 2, 3), (1, 3), (0, 1, 2, 3), (0, 3)])
@pytest.mark.parametrize("name", ["sum", "var"])
def test_folds_over_dimensions_apart(cupy_nn, on_device, name, dims):
    x = normal(5, 6, 7, 300)
    assert agrees(getattr(cupy_nn, name)(on_device(x), dim=dims), name, x, dim=dims)


def test_many_long_columns_take_four_threads_each(cupy_nn, on_device):
    x = normal(129, 2**18 + 5)
    assert agrees(cupy_nn.amax(on_device(x), 0), "amax", x, 0)


def test_the_first_of_equal_elements_is_found_wherever_a_row_is_split(cupy_nn, on_device):
    x = np.zeros((2, 30000), np.float32)
    x[1, [17000, 29000]] = 1
    np.testing.assert_array_equal(cupy_nn.argmax(on_device(x), 1), [0, 17000])
    np.testing.assert_array_equal(cupy_nn.argmin(on_device(x), 1), [0, 0])


def test_a_nan_is_the_largest_and_the_smallest(cupy_nn, on_device):
    x = normal(2, 500)
    x[1, 77] = np.nan
    assert np.isnan(cupy_nn.amax(on_device(x), 1)).tolist() == [False, True]
    assert np.isnan(cupy_nn.amin(on_device(x), 1)).tolist() == [False, True]
    assert int(cupy_nn.argmax(on_device(x), 1)[1]) == 77
    assert np.isnan(cupy_nn.softmax(on_device(x), 1)[1]).all()


def test_a_fold_over_nothing_is_refused(cupy_nn, on_device):
    with pytest.raises(ValueError, match=r"empty dimensions \(1,\)"):
        cupy_nn.amax(on_device(np.zeros((2, 0), np.float32)), 1)
    assert cupy_nn.sum(on_device(np.zeros((0, 2), np.float32)), 1).shape == (0,)


def test_variance_survives_a_mean_far_from_zero(cupy_nn, on_device):
    x = normal(3, 5000) + np.float32(1000)
    assert agrees(cupy_nn.var(on_device(x), 1), "var", x, 1)  # a difference of sums of squares has no right digit
    seen = np.asarray(cupy_nn.layer_norm(on_device(x), (5000,)))
    np.testing.assert_allclose(seen.std(axis=1), 1, rtol=1e-3)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(("shape", "dim"), [((3, 20000), 1), ((4, 30, 50), 1), ((40, 30), 1), ((300, 5), 0)])
def test_softmax_along_any_dimension(cupy_nn, on_device, name, shape, dim):
    x = 30 * normal(*shape)
    assert agrees(getattr(cupy_nn, name)(on_device(x), dim), name, x, dim)


@pytest.mark.parametrize("shape", [(4, 6, 40, 50), (3, 8, 7), (2, 4, 3, 5, 7)])
def test_norms_over_images(cupy_nn, on_device, shape):
    x, weight, bias = normal(*shape), normal(shape[1], seed=1), normal(shape[1], seed=2)
    given = [on_device(values) for values in (weight, bias)]
    assert agrees(cupy_nn.batch_norm(on_device(x), *given), "batch_norm", x, weight, bias)
    assert agrees(cupy_nn.instance_norm(on_device(x)), "instance_norm", x)
    assert agrees(cupy_nn.group_norm(on_device(x), 2, *given), "group_norm", x, 2, weight, bias)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((3, 4000), 1), ((3, 4001), 1), ((2, 1024), 1), ((2, 1), 1), ((5,), 0), ((3, 70, 20), 1), ((2, 0), 1)],
)
def test_scans_along_any_dimension(cupy_nn, on_device, name, shape, dim):
    x = 1 + normal(*shape) / 50
    assert agrees(getattr(cupy_nn, name)(on_device(x), dim), name, x, dim)


def test_a_dimension_that_does_not_exist_is_named(cupy_nn, on_device):
    with pytest.raises(IndexError, match="dimension 2 does not exist in an array of 2 dimensions"):
        cupy_nn.sum(on_device(normal(2, 3)), 2)
    with pytest.raises(ValueError, match="twice"):
        cupy_nn.sum(on_device(normal(2, 3)), (1, -1))
