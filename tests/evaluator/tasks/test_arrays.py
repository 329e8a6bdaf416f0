"""Drawn arrays depend on seed, place and case alone, and follow their distributions."""

import numpy as np
import pytest

from evaluator.tasks import catalog
from evaluator.tasks.arrays import Term, draw, draw_array, parse_init
from evaluator.tasks.task import Array, Task


def task_of(*arrays):
    return Task(id="t", name="t", family="user", source="", sizes={"cpu": arrays})


def test_equal_arguments_give_equal_arrays():
    task = catalog.get("2_014")
    for first, second in zip(draw(task, "cpu", 7), draw(task, "cpu", 7), strict=True):
        np.testing.assert_array_equal(first, second)


def test_numbers_are_the_same_on_every_machine():
    drawn = draw_array(Array("x", (3,)), seed=5, index=1)
    np.testing.assert_array_equal(drawn, np.asarray([0.91318345, 0.7176855, 0.13882488], np.float32))


@pytest.mark.parametrize(("seed", "index", "case"), [(6, 0, "plain"), (5, 1, "plain"), (5, 0, "fresh")])
def test_another_seed_place_or_case_gives_other_numbers(seed, index, case):
    array = Array("x", (1000,))
    assert not np.isin(draw_array(array, seed, index, case), draw_array(array, 5, 0)).mean() > 0.01


def test_an_array_does_not_depend_on_the_arrays_beside_it():
    x, y = Array("x", (8,)), Array("y", (8,))
    longer = draw(task_of(Array("x", (800,)), y), "cpu", 3)
    np.testing.assert_array_equal(draw(task_of(x, y), "cpu", 3)[1], longer[1])


@pytest.mark.parametrize(
    ("init", "low", "high", "mean", "deviation"),
    [
        ("uniform(0,1)", 0, 1, 0.5, 12**-0.5),
        ("uniform(-0.25,0.25)", -0.25, 0.25, 0, 0.5 * 12**-0.5),
        ("normal(0,1)", -6, 6, 0, 1),
        ("normal(3,0.5)", 0, 6, 3, 0.5),
        ("constant(2.5)", 2.5, 2.5, 2.5, 0),
        ("integers(0,10)", 0, 9, 4.5, (99 / 12) ** 0.5),
    ],
)
def test_distributions_have_their_range_mean_and_deviation(init, low, high, mean, deviation):
    drawn = draw_array(Array("x", (100, 400), init=init), 1, 0)
    assert drawn.dtype == np.float32
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert drawn.mean() == pytest.approx(mean, abs=0.03)
    assert drawn.std() == pytest.approx(deviation, abs=0.03)


def test_a_scalar_factor_is_one_number_for_the_whole_array():
    array = Array("x", (5000,), init="uniform(0,1)*scalar:uniform(0,1)")
    tops = [draw_array(array, seed, 0).max() for seed in range(5)]
    assert max(tops) - min(tops) > 0.1  # five draws of the factor; without it every top would be above 0.99
    assert max(tops) < 1


@pytest.mark.parametrize(("dtype", "init"), [("int64", "integers(0,7)"), ("bool", "integers(0,2)")])
def test_integers_and_masks_keep_their_dtype(dtype, init):
    drawn = draw_array(Array("x", (300,), dtype=dtype, init=init), 1, 0)
    assert drawn.dtype == np.dtype(dtype)
    assert set(drawn.tolist()) == set(range(7 if dtype == "int64" else 2))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (7, 5)])
def test_shapes_of_any_rank_are_drawn(shape):
    drawn = draw_array(Array("x", shape), 1, 0)
    assert drawn.shape == shape
    assert drawn.flags.c_contiguous


def test_an_init_is_read_as_its_factors():
    assert parse_init("normal(0,1)*scalar:constant(2)").terms == (
        Term("normal", (0.0, 1.0), scalar=False),
        Term("constant", (2.0,), scalar=True),
    )


@pytest.mark.parametrize("init", ["", "uniform", "uniform(0)", "normal(a,b)", "gamma(1,2)", "uniform(0,1)**2"])
def test_a_bad_init_shows_the_grammar(init):
    with pytest.raises(ValueError, match=r"uniform\(low,high\)"):
        parse_init(init)


def of_structure(name, shape=(40, 40)):
    return draw_array(Array("x", shape, init=f"{name}(uniform(-1,1))"), 3, 0)


def test_a_structure_is_read_apart_from_what_is_drawn():
    read = parse_init("softmax(uniform(0,1)*scalar:uniform(0,1))")
    assert read.structure == "softmax"
    assert [term.scalar for term in read.terms] == [False, True]


def test_triangles_are_zero_on_one_side_alone():
    upper, lower = of_structure("triu"), of_structure("tril")
    assert not upper[np.tril_indices(40, -1)].any()
    assert not lower[np.triu_indices(40, 1)].any()
    assert upper[np.triu_indices(40)].all()
    assert lower[np.tril_indices(40)].all()


def test_a_symmetric_matrix_is_the_mean_of_a_draw_and_its_transpose():
    raw = draw_array(Array("x", (40, 40), init="symmetric(uniform(-1,1))"), 3, 0, structured=False)
    np.testing.assert_array_equal(of_structure("symmetric"), (raw + raw.T) / 2)
    assert not np.array_equal(raw, raw.T)


def test_probabilities_of_a_row_sum_to_one():
    x = of_structure("softmax", (5, 300))
    assert np.all(x > 0)
    np.testing.assert_allclose(x.sum(axis=-1), 1, rtol=1e-5)


def test_signs_are_as_often_one_as_the_other():
    x = of_structure("sign")
    assert set(np.unique(x)) == {-1, 1}
    assert abs(x.mean()) < 0.1
