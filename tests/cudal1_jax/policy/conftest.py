"""A toy decoder, and JAX without silent broadcasting or promotion."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import lora, parameters
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params

TOY = DecoderConfig(
    layers=2,
    width=64,
    mlp_width=96,
    heads=6,
    key_heads=2,
    head_size=16,
    vocabulary=101,
    rope_theta=500.0,  # unusual, so that a theta that is assumed shows
    norm_epsilon=1e-5,
    context=1024,
    tied_embeddings=True,
)


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def config() -> DecoderConfig:
    return TOY


def drawn(tree: Any, scale: float) -> Any:
    """Normal numbers of the tree's shapes, from NumPy: JAX would compile a program for each shape."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(scale * rng.standard_normal(x.shape), x.dtype), tree)


@pytest.fixture(scope="session")
def params() -> Params:
    """Weights ten times their usual size: attention and logits are far from uniform."""
    weights = drawn(parameters.abstract(TOY), scale=0.2)
    return {name: 1 + x if name.endswith("norm") else x for name, x in weights.items()}


@pytest.fixture(scope="session")
def adapter() -> lora.Adapter:
    """An adapter whose both halves are non-zero."""
    return drawn(jax.eval_shape(lambda: lora.init(jax.random.key(0), TOY, rank=4, alpha=8)), scale=0.1)
