"""Names, shapes and axes of the parameters."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from cudal1_jax.policy import parameters


def test_abstract_parameters_have_the_shapes_and_dtypes_of_real_ones(config):
    real = jax.eval_shape(lambda: parameters.init(jax.random.key(0), config, jnp.bfloat16))
    expected = {name: (x.shape, x.dtype) for name, x in real.items()}
    assert {name: (x.shape, x.dtype) for name, x in parameters.abstract(config, jnp.bfloat16).items()} == expected


def test_every_axis_has_a_name(config):
    shapes = parameters.abstract(config)
    axes = parameters.logical_axes(config)
    assert {name: len(a) for name, a in axes.items()} == {name: len(x.shape) for name, x in shapes.items()}
    assert axes["q"] == ("layers", "width", "heads")
    assert axes["down"] == ("layers", "mlp", "width")


def test_only_an_untied_model_has_a_table_of_its_own_for_logits(config):
    untied = dataclasses.replace(config, tied_embeddings=False)
    assert parameters.abstract(untied).keys() - parameters.abstract(config).keys() == {"unembed"}


def test_weights_are_small_random_numbers_and_norms_one(config):
    drawn = jax.jit(parameters.init, static_argnums=1)(jax.random.key(3), config)
    assert float(jnp.std(drawn["gate"])) == pytest.approx(0.02, rel=0.05)
    assert bool(jnp.all(drawn["attn_norm"] == 1))
    assert not bool(jnp.all(drawn["gate"][0] == drawn["gate"][1]))


def test_parameters_of_another_shape_are_refused(config, params):
    with pytest.raises(ValueError, match=r"'embed': \(\(101, 64\), \(102, 64\)\)"):
        parameters.check(dataclasses.replace(config, vocabulary=102), params)
    with pytest.raises(ValueError, match=r"'up': \(None, \(2, 64, 96\)\)"):
        parameters.check(config, {name: x for name, x in params.items() if name != "up"})


@pytest.mark.parametrize(("field", "value", "message"), [("key_heads", 4, "multiple"), ("head_size", 15, "even")])
def test_impossible_shapes_are_refused(config, field, value, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config, **{field: value})
