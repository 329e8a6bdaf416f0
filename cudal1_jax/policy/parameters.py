"""The decoder's parameters: names, shapes, initial values and logical axes, described once in Flax NNX.

Compute never runs inside the module: `init` and `abstract` give a flat dict, and `decoder` has functions of that dict.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from cudal1_jax.policy.config import DecoderConfig

Params = dict[str, jax.Array]

LAYER_PARAMETERS = ("attn_norm", "q", "k", "v", "o", "mlp_norm", "gate", "up", "down")  # stacked [L, ...]


class Decoder(nnx.Module):
    """Description of the parameters; weights are stored [in, out] so that `x @ w` needs no transpose."""

    def __init__(self, config: DecoderConfig, *, rngs: nnx.Rngs, dtype: jnp.dtype = jnp.float32) -> None:
        normal, ones = nnx.initializers.normal(0.02), nnx.initializers.ones

        def param(initializer: nnx.Initializer, **axes: int) -> nnx.Param:
            return nnx.Param(initializer(rngs.params(), tuple(axes.values()), dtype), logical_axes=tuple(axes))

        L, D, F = config.layers, config.width, config.mlp_width
        query, key = config.heads * config.head_size, config.key_heads * config.head_size
        self.embed = param(normal, vocabulary=config.vocabulary, width=D)
        self.attn_norm = param(ones, layers=L, width=D)
        self.q = param(normal, layers=L, width=D, heads=query)
        self.k = param(normal, layers=L, width=D, key_heads=key)
        self.v = param(normal, layers=L, width=D, key_heads=key)
        self.o = param(normal, layers=L, heads=query, width=D)
        self.mlp_norm = param(ones, layers=L, width=D)
        self.gate = param(normal, layers=L, width=D, mlp=F)
        self.up = param(normal, layers=L, width=D, mlp=F)
        self.down = param(normal, layers=L, mlp=F, width=D)
        self.final_norm = param(ones, width=D)
        if not config.tied_embeddings:
            self.unembed = param(normal, vocabulary=config.vocabulary, width=D)


def init(key: jax.Array, config: DecoderConfig, dtype: jnp.dtype = jnp.float32) -> Params:
    """Random parameters: normal with deviation 0.02, norms one."""
    return _arrays(Decoder(config, rngs=nnx.Rngs(key), dtype=dtype))


def abstract(config: DecoderConfig, dtype: jnp.dtype = jnp.float32) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the parameters, without memory for them."""
    return _arrays(_abstract_module(config, dtype))


def logical_axes(config: DecoderConfig) -> dict[str, tuple[str, ...]]:
    """Name of every axis of every parameter, for a table that maps them to mesh axes."""
    module = _abstract_module(config, jnp.float32)
    return {name: param.get_metadata()["logical_axes"] for name, param in nnx.state(module, nnx.Param).items()}


def unembedding(config: DecoderConfig, params: Params) -> jax.Array:
    """The table [V, D] that turns hidden states into logits."""
    return params["embed"] if config.tied_embeddings else params["unembed"]


def check(config: DecoderConfig, params: Params) -> None:
    """Raises ValueError where names or shapes are not those of the config."""
    expected = {name: leaf.shape for name, leaf in abstract(config).items()}
    seen = {name: tuple(leaf.shape) for name, leaf in params.items()}
    if seen != expected:
        wrong = {
            n: (seen.get(n), expected.get(n)) for n in seen.keys() | expected.keys() if seen.get(n) != expected.get(n)
        }
        raise ValueError(f"parameters do not fit the config; name: (seen, expected) = {wrong}")


def _abstract_module(config: DecoderConfig, dtype: jnp.dtype) -> Decoder:
    return nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0), dtype=dtype))


def _arrays(module: Decoder) -> dict:
    return dict(nnx.to_pure_dict(nnx.state(module, nnx.Param)))
