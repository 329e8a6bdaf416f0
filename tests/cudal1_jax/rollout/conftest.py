"""A toy decoder with logits far from uniform, and JAX without silent broadcasting or promotion."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import parameters
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params

TOY = DecoderConfig(
    layers=2,
    width=64,
    mlp_width=96,
    heads=4,
    key_heads=2,
    head_size=16,
    vocabulary=300,  # more than one span of the draw, and no multiple of it
    rope_theta=500.0,
    norm_epsilon=1e-5,
    context=512,
    tied_embeddings=True,
)


@pytest.fixture(autouse=True, scope="module")
def _strict() -> Iterator[None]:
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture(scope="session")
def config() -> DecoderConfig:
    return TOY


@pytest.fixture(scope="session")
def params() -> Params:
    rng = np.random.default_rng(0)
    shapes = parameters.abstract(TOY)
    weights = {name: 0.15 * rng.standard_normal(x.shape, np.float32) for name, x in shapes.items()}
    return {name: jnp.asarray(1 + x if name.endswith("norm") else x) for name, x in weights.items()}
