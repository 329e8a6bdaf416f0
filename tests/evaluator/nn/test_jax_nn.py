"""Values computed by hand, each with what the likely bug would give."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.nn import jax_nn as nn


def array(*values):
    return jnp.asarray(values, jnp.float32)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (nn.relu, -2.0, 0.0),
        (nn.leaky_relu, -2.0, -0.02),
        (lambda x: nn.leaky_relu(x, negative_slope=0.2), -2.0, -0.4),
        (nn.sigmoid, 0.0, 0.5),
        (nn.sigmoid, math.log(3), 0.75),
        (nn.silu, math.log(3), 0.75 * math.log(3)),
        (nn.gelu, 1.0, 0.8413447),  # normal distribution function at 1; the tanh form gives 0.8411920
        (lambda x: nn.gelu(x, approximate="tanh"), 1.0, 0.8411920),
        (nn.softplus, 0.0, math.log(2)),
        (nn.softplus, 100.0, 100.0),  # without the threshold exp overflows
        (lambda x: nn.softplus(x, beta=2), 0.0, math.log(2) / 2),  # log(2) if not divided by beta
        (nn.elu, -1.0, math.exp(-1) - 1),
        (lambda x: nn.elu(x, alpha=2.0), -1.0, 2 * (math.exp(-1) - 1)),
        (nn.selu, 1.0, 1.0507010),
        (nn.hardtanh, 3.0, 1.0),
        (nn.hardsigmoid, 1.0, 4 / 6),  # 0.7 with the older slope of 0.2
        (nn.hardswish, 1.0, 4 / 6),
        (nn.relu6, 7.0, 6.0),
        (nn.softsign, -3.0, -0.75),
        (nn.mish, 0.0, 0.0),
        (nn.logsigmoid, -200.0, -200.0),  # -inf if computed as log(sigmoid)
        (nn.rsqrt, 4.0, 0.5),
    ],
)
def test_elementwise_functions_at_a_point(function, x, expected):
    np.testing.assert_allclose(function(array(x))[0], expected, rtol=1e-6, atol=1e-7)


def test_an_unknown_form_of_gelu_is_refused():
    with pytest.raises(ValueError, match='must be "none" or "tanh"'):
        nn.gelu(array(1.0), approximate="sigmoid")


def test_softmax_of_large_values_is_finite():
    np.testing.assert_allclose(nn.softmax(array(1000.0, 1000.0), dim=0), [0.5, 0.5])


def test_layer_norm_divides_by_the_biased_deviation():
    normed = nn.layer_norm(array(1.0, 3.0)[None], (2,), eps=0.0)
    np.testing.assert_allclose(normed, [[-1, 1]])  # +-0.7071 with the unbiased deviation


def test_layer_norm_adds_epsilon_under_the_root():
    normed = nn.layer_norm(array(1.0, 3.0)[None], (2,), eps=3.0)
    np.testing.assert_allclose(normed, [[-0.5, 0.5]])  # +-0.25 with epsilon outside the root


def test_layer_norm_refuses_a_shape_that_is_not_the_end_of_the_input():
    with pytest.raises(ValueError, match=r"normalized_shape \(3,\)"):
        nn.layer_norm(jnp.ones((3, 2)), (3,))


def test_var_is_unbiased_by_default():
    np.testing.assert_allclose(nn.var(array(1.0, 3.0)), 2.0)  # 1 if biased


def test_argmax_takes_the_first_of_equal_elements():
    assert int(nn.argmax(array(1.0, 5.0, 5.0), dim=0)) == 1


def test_smooth_l1_joins_its_branches_at_beta():
    loss = nn.smooth_l1_loss(array(1.0, 4.0), array(0.0, 0.0), reduction="none", beta=2.0)
    np.testing.assert_allclose(loss, [0.25, 3.0])  # [0.5, 3.5] with beta ignored


def test_kl_of_a_zero_probability_is_zero():
    assert float(nn.kl_div(jnp.log(array(0.5, 0.5)), array(1.0, 0.0), reduction="sum")) == pytest.approx(math.log(2))


def test_reductions_refuse_an_unknown_name():
    with pytest.raises(ValueError, match='"mean", "sum" or "none"'):
        nn.mse_loss(array(1.0), array(1.0), reduction="average")


def test_functions_keep_float32_in_a_64_bit_process():
    with jax.enable_x64(True):
        x = jnp.asarray([[0.5, 1.5]], jnp.float32)
        for function in (nn.gelu, nn.softplus, nn.selu, nn.mean, nn.sum, nn.hardsigmoid, nn.mish, nn.norm):
            assert function(x).dtype == jnp.float32, function.__name__
        assert nn.layer_norm(x, (2,)).dtype == jnp.float32
        assert nn.argmax(x, dim=1).dtype == jnp.int64


def test_functions_compute_in_float64_when_given_float64():
    with jax.enable_x64(True):
        x = jnp.asarray([[1e-9, 2.0]], jnp.float64)
        assert float(nn.sum(1 + x)) - 4 != 0  # 1e-9 is lost in float32
        assert nn.layer_norm(x, (2,)).dtype == jnp.float64
        np.testing.assert_allclose(nn.gelu(x)[0, 1], 1.9544997361036416, rtol=1e-15)


def test_group_norm_needs_channels_that_split():
    with pytest.raises(ValueError, match="5 channels cannot be split into 2"):
        nn.group_norm(jnp.ones((1, 5, 3)), 2)


def test_flatten_and_chunk_cut_where_pytorch_cuts():
    assert nn.flatten(jnp.ones((2, 3, 4, 5)), 1, 2).shape == (2, 12, 5)
    assert [part.shape[0] for part in nn.chunk(jnp.ones((7,)), 3)] == [3, 3, 1]
