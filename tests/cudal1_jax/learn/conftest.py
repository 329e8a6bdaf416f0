"""A decoder small enough to differentiate in a test, and an adapter that does something."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import lora, parameters
from cudal1_jax.policy.config import DecoderConfig


@dataclasses.dataclass(frozen=True)
class Toy:
    config: DecoderConfig
    params: dict
    adapter: lora.Adapter


@pytest.fixture(autouse=True, scope="module")
def compile_quickly():
    """Toy programs run in microseconds and compile in seconds: half the time of these tests goes without this."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def toy() -> Toy:
    """Two layers, width 16, 4 query heads on 2 key heads; the adapter's b is not zero, so that a has a gradient."""
    config = DecoderConfig(
        layers=2, width=16, mlp_width=24, heads=4, key_heads=2, head_size=4, vocabulary=50, rope_theta=1e4,
        norm_epsilon=1e-5, context=128, tied_embeddings=True,
    )  # fmt: skip
    draw = np.random.default_rng(0)

    def drawn(*shape: int, size: float = 0.1) -> jax.Array:
        return jnp.asarray(size * draw.normal(size=shape), jnp.float32)

    shapes = {name: leaf.shape for name, leaf in parameters.abstract(config).items()}
    params = {name: 1.0 + drawn(*shape) if "norm" in name else drawn(*shape) for name, shape in shapes.items()}
    params["embed"] = 4.0 * params["embed"]
    weights = {
        target: {"a": drawn(2, shapes[target][1], 2), "b": drawn(2, 2, shapes[target][2])} for target in lora.TARGETS
    }
    return Toy(config, params, lora.Adapter(weights, scale=1.0))
