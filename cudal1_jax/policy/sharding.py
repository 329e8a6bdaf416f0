"""Where each array lies on a mesh of devices: one table from what an axis means to the mesh axis that divides it.

A mesh has four axes. `data` repeats the parameters and divides the rows of a batch; `fsdp` divides parameters and rows
alike (parameters are gathered layer by layer where they are used); `tensor` divides heads, inner widths and the
vocabulary; `expert` divides the experts of a mixture. XLA derives the communication. A mesh of one device changes
nothing, so there is no second code path.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from cudal1_jax.policy import parameters
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.policy.parameters import Params

AXES = ("data", "fsdp", "tensor", "expert")
ROWS = ("data", "fsdp")  # mesh axes that divide the rows of a batch

RULES: dict[str, str | None] = {  # name of an axis of a parameter (`parameters.logical_axes`) -> mesh axis
    "layers": None,
    "width": "fsdp",
    "vocabulary": "tensor",
    "heads": "tensor",
    "key_heads": "tensor",
    "mlp": "tensor",
    "experts": "expert",
    "head_size": None,
    "latent": None,
    "rank": None,  # of a low-rank adapter
}


def mesh(sizes: Mapping[str, int], devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A mesh of `sizes` of `AXES`, absent ones 1, over the first of `devices` (default: all that JAX sees).

    One size may be -1: as many as there are devices for. ValueError where there are too few devices.
    """
    devices = jax.devices() if devices is None else devices
    unknown = sorted(set(sizes) - set(AXES))
    if unknown:
        raise ValueError(f"a mesh has no axis {', '.join(unknown)}: its axes are {', '.join(AXES)}")
    shape = [sizes.get(axis, 1) for axis in AXES]
    known = math.prod(size for size in shape if size != -1)
    if shape.count(-1) == 1 and known > 0:
        shape[shape.index(-1)] = len(devices) // known
    if min(shape) < 1 or math.prod(shape) > len(devices):
        asked = ", ".join(f"{axis}={sizes.get(axis, 1)}" for axis in AXES)
        raise ValueError(f"a mesh of {asked} needs other devices than the {len(devices)} there are; one size may be -1")
    used = devices[: math.prod(shape)]
    return jax.make_mesh(shape, AXES, axis_types=(AxisType.Auto,) * len(AXES), devices=used)


def spec(axes: Sequence[str], shape: Sequence[int], mesh: Mesh) -> PartitionSpec:
    """How an array with named `axes` is divided. An axis whose length its mesh axis does not divide stays whole.

    KeyError: a name that the table lacks.
    """
    parts = []
    for name, length in zip(axes, shape, strict=True):
        axis = RULES[name]
        parts.append(axis if axis is not None and length % mesh.shape[axis] == 0 else None)
    return PartitionSpec(*parts)


def of_parameters(config: DecoderConfig, mesh: Mesh) -> dict[str, NamedSharding]:
    """Shardings of `parameters.init(config)`, by name."""
    axes = parameters.logical_axes(config)
    return {
        name: NamedSharding(mesh, spec(axes[name], leaf.shape, mesh))
        for name, leaf in parameters.abstract(config).items()
    }


def of_adapter(config: DecoderConfig, adapter: Adapter, mesh: Mesh) -> Adapter:
    """Shardings of an adapter, as a tree of its form: each matrix is divided as the weight is that it is added to."""
    axes = parameters.logical_axes(config)

    def pair(target: str, leaves: Mapping[str, jax.Array]) -> dict[str, NamedSharding]:
        layers, inputs, outputs = axes[target]
        named = {"a": (layers, inputs, "rank"), "b": (layers, "rank", outputs)}
        return {side: NamedSharding(mesh, spec(named[side], leaf.shape, mesh)) for side, leaf in leaves.items()}

    weights: Any = {target: pair(target, leaves) for target, leaves in adapter.weights.items()}
    return Adapter(weights, adapter.scale)


def place(config: DecoderConfig, params: Params, mesh: Mesh) -> Params:
    """The parameters divided over the mesh."""
    return _put(params, of_parameters(config, mesh))


def rows(mesh: Mesh | AbstractMesh) -> int:
    """Parts into which the rows of a batch are divided."""
    return mesh.shape["data"] * mesh.shape["fsdp"]


def of_rows(batch: Any, mesh: Mesh, axis: int = 0) -> Any:
    """Shardings of a batch, any tree of arrays: `axis` of each leaf is divided over `ROWS` where its length allows."""

    def one(leaf: jax.Array) -> NamedSharding:
        divides = leaf.ndim > axis and leaf.shape[axis] % rows(mesh) == 0
        return NamedSharding(mesh, PartitionSpec(*[None] * axis, ROWS) if divides else PartitionSpec())

    return jax.tree.map(one, batch)


def place_adapter(config: DecoderConfig, adapter: Adapter, mesh: Mesh) -> Adapter:
    """The adapter divided over the mesh."""
    return _put(adapter, of_adapter(config, adapter, mesh))


def place_whole(tree: Any, mesh: Mesh) -> Any:
    """The tree, with a copy on every device of what does not lie on the mesh yet."""
    whole = NamedSharding(mesh, PartitionSpec())

    def one(leaf: jax.Array) -> jax.Array:
        there = isinstance(leaf.sharding, NamedSharding) and leaf.sharding.mesh == mesh
        return leaf if there else _put(leaf, whole)

    return jax.tree.map(one, tree)


def place_rows(batch: Any, mesh: Mesh, axis: int = 0) -> Any:
    """The batch divided over the mesh by its rows."""
    return _put(batch, of_rows(batch, mesh, axis))


def _put(tree: Any, shardings: Any) -> Any:
    """Arrays that every process holds, divided among all processes; `device_put` would first compare them all."""

    def one(leaf: jax.Array, where: NamedSharding) -> jax.Array:
        if where.is_fully_addressable:
            return jax.device_put(leaf, where)
        host = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, where, lambda index: host[index])

    return jax.tree.map(one, tree, shardings)


def mesh_of(tree: Any) -> Mesh | None:
    """The mesh that the arrays of a tree lie on; None where it is not known to be one."""
    where = jax.tree.leaves(tree)[0].sharding
    return where.mesh if isinstance(where, NamedSharding) and isinstance(where.mesh, Mesh) else None


def place_cache(cache: Any, mesh: Mesh | None) -> Any:
    """Keys and values divided over the mesh, where there is one."""
    return cache if mesh is None else _put(cache, of_cache(cache, mesh))


def of_cache(cache: Any, mesh: Mesh) -> Any:
    """Shardings of keys and values: rows [B, ...] over `ROWS`, and of [B, K, ...] the key heads over `tensor`."""

    def one(leaf: jax.Array) -> NamedSharding:
        by_rows = ROWS if leaf.shape[0] % rows(mesh) == 0 else None
        by_heads = "tensor" if leaf.ndim == 4 and leaf.shape[1] % mesh.shape["tensor"] == 0 else None
        return NamedSharding(mesh, PartitionSpec(by_rows, by_heads) if leaf.ndim > 1 else PartitionSpec())

    return jax.tree.map(one, cache)


def on(mesh: Mesh | None) -> contextlib.AbstractContextManager:
    """The context in which programs of a mesh are traced and run; None: no mesh."""
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


def whole(tree: Any) -> Any:
    """Inside `on`: a copy of what is traced on every device, so that every process can read it."""
    mesh = jax.sharding.get_abstract_mesh()
    return tree if mesh.empty else jax.lax.with_sharding_constraint(tree, PartitionSpec())


def divide_rows(x: jax.Array) -> jax.Array:
    """Inside `on`: activations [B, ...] kept divided by rows, so that XLA gathers weights and not these."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or x.shape[0] % rows(mesh):
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(ROWS))


def shard_bytes(leaf: Any) -> int:
    """Bytes of one device's part of an array or a `jax.ShapeDtypeStruct` with a sharding."""
    return math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
