"""The decoder's parameters: names, shapes, initial values and logical axes, described once in Flax NNX.

Compute never runs inside the module: `init` and `abstract` give a flat dict, and `decoder` has functions of that dict.

Logical axes, which `sharding.RULES` maps to a mesh:
  vocabulary  V           tokens
  width       D           the residual stream
  layers                  what `lax.scan` runs over: L, or those of the first dense layers, or of the expert layers
  heads       H d         query heads, or outputs of attention, concatenated
  key_heads   K d         key or value heads, concatenated
  head_size   d           one head
  mlp         F           inner width of a gated MLP, of one expert, or of the shared expert
  experts     E           routed experts
  latent                  inner size of latent attention's low-rank maps
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from cudal1_jax.policy.config import DecoderConfig, Experts, Latent

Params = dict[str, jax.Array]

OUTSIDE_LAYERS = ("embed", "final_norm", "unembed")
DENSE = ("gate", "up", "down")  # of an ordinary MLP
OF_EXPERTS = ("router", "router_bias", "expert_gate", "expert_up", "expert_down", "shared_gate", "shared_up",
              "shared_down")  # fmt: skip


class Stack(NamedTuple):
    """Consecutive layers of one form."""

    first: int
    last: int  # excluded
    routed: bool  # experts in the place of an MLP


class Decoder(nnx.Module):
    """Description of the parameters; weights are stored [in, out] so that `x @ w` needs no transpose."""

    def __init__(self, config: DecoderConfig, *, rngs: nnx.Rngs, dtype: jnp.dtype = jnp.float32) -> None:
        self._rngs, self._dtype = rngs, dtype
        L, D = config.layers, config.width
        self.embed = self._weight(vocabulary=config.vocabulary, width=D)
        self.attn_norm = self._ones(layers=L, width=D)
        if config.latent is None:
            self._grouped_attention(config)
        else:
            self._latent_attention(config, config.latent)
        self.mlp_norm = self._ones(layers=L, width=D)
        dense = L if config.experts is None else config.experts.dense_layers
        if dense:
            F = config.mlp_width
            self.gate = self._weight(layers=dense, width=D, mlp=F)
            self.up = self._weight(layers=dense, width=D, mlp=F)
            self.down = self._weight(layers=dense, mlp=F, width=D)
        if config.experts is not None:
            self._mixture(D, L - dense, config.experts)
        self.final_norm = self._ones(width=D)
        if not config.tied_embeddings:
            self.unembed = self._weight(vocabulary=config.vocabulary, width=D)
        del self._rngs, self._dtype

    def _grouped_attention(self, config: DecoderConfig) -> None:
        L, D = config.layers, config.width
        query, key = config.heads * config.head_size, config.key_heads * config.head_size
        self.q = self._weight(layers=L, width=D, heads=query)
        self.k = self._weight(layers=L, width=D, key_heads=key)
        self.v = self._weight(layers=L, width=D, key_heads=key)
        self.o = self._weight(layers=L, heads=query, width=D)
        if config.qkv_bias:
            self.q_bias = self._zeros(layers=L, heads=query)
            self.k_bias = self._zeros(layers=L, key_heads=key)
            self.v_bias = self._zeros(layers=L, key_heads=key)
        if config.qk_norm:
            self.q_norm = self._ones(layers=L, head_size=config.head_size)
            self.k_norm = self._ones(layers=L, head_size=config.head_size)

    def _latent_attention(self, config: DecoderConfig, latent: Latent) -> None:
        L, D, H = config.layers, config.width, config.heads
        query = H * config.head_size
        if latent.query_rank is None:
            self.q = self._weight(layers=L, width=D, heads=query)
        else:
            self.q_down = self._weight(layers=L, width=D, latent=latent.query_rank)
            self.q_latent_norm = self._ones(layers=L, latent=latent.query_rank)
            self.q_up = self._weight(layers=L, latent=latent.query_rank, heads=query)
        self.kv_down = self._weight(layers=L, width=D, latent=latent.cached_size)
        self.kv_latent_norm = self._ones(layers=L, latent=latent.rank)
        self.kv_up = self._weight(layers=L, latent=latent.rank, heads=H * (latent.plain_size + latent.value_size))
        self.o = self._weight(layers=L, heads=H * latent.value_size, width=D)

    def _mixture(self, D: int, layers: int, experts: Experts) -> None:
        E, F, shared = experts.count, experts.mlp_width, experts.shared_width
        self.router = self._weight(layers=layers, width=D, experts=E)
        if experts.gate == "sigmoid":
            self.router_bias = self._zeros(layers=layers, experts=E)
        self.expert_gate = self._weight(layers=layers, experts=E, width=D, mlp=F)
        self.expert_up = self._weight(layers=layers, experts=E, width=D, mlp=F)
        self.expert_down = self._weight(layers=layers, experts=E, mlp=F, width=D)
        if shared:
            self.shared_gate = self._weight(layers=layers, width=D, mlp=shared)
            self.shared_up = self._weight(layers=layers, width=D, mlp=shared)
            self.shared_down = self._weight(layers=layers, mlp=shared, width=D)

    def _weight(self, **axes: int) -> nnx.Param:
        return self._param(nnx.initializers.normal(0.02), axes)

    def _ones(self, **axes: int) -> nnx.Param:
        return self._param(nnx.initializers.ones, axes)

    def _zeros(self, **axes: int) -> nnx.Param:
        return self._param(nnx.initializers.zeros, axes)

    def _param(self, initializer: nnx.Initializer, axes: dict[str, int]) -> nnx.Param:
        value = initializer(self._rngs.params(), tuple(axes.values()), self._dtype)
        return nnx.Param(value, logical_axes=tuple(axes))


def stacks(config: DecoderConfig) -> tuple[Stack, ...]:
    """The layers, in order, as stacks that are scanned one after the other."""
    if config.experts is None:
        return (Stack(0, config.layers, routed=False),)
    dense = config.experts.dense_layers
    routed = Stack(dense, config.layers, routed=True)
    return (Stack(0, dense, routed=False), routed) if dense else (routed,)


def rows_of(stack: Stack, name: str, length: int) -> slice | None:
    """Where the stack's layers lie in the parameter `name` of `length` layers; None: the stack has no such parameter.

    Parameters of attention and norms are stacked over all layers, those of an MLP or of experts over its own.
    """
    if name in OUTSIDE_LAYERS or name in (DENSE if stack.routed else OF_EXPERTS):
        return None
    own = name in DENSE or name in OF_EXPERTS
    return slice(0, length) if own else slice(stack.first, stack.last)


def of_stack(stack: Stack, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters [layers of the stack, ...] of a stack; also of a tree per name, such as an adapter's weights."""

    def cut(leaf: jax.Array, rows: slice) -> jax.Array:
        return leaf if rows == slice(0, leaf.shape[0]) else leaf[rows]

    parts = {}
    for name, tree in params.items():
        rows = rows_of(stack, name, jax.tree.leaves(tree)[0].shape[0])
        if rows is not None:
            parts[name] = jax.tree.map(lambda leaf, rows=rows: cut(leaf, rows), tree)
    return parts


def init(key: jax.Array, config: DecoderConfig, dtype: jnp.dtype = jnp.float32) -> Params:
    """Random parameters: normal with deviation 0.02, norms one, biases zero."""
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
