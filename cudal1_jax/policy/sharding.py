"""Where each array lies on a mesh of devices: one table from what an axis means to the mesh axis that divides it.

A mesh has four axes. `data` repeats the parameters and divides the rows of a batch; `fsdp` divides parameters and rows
alike (parameters are gathered layer by layer where they are used); `tensor` divides heads, inner widths and the
vocabulary; `expert` divides the experts of a mixture. XLA derives the communication. A mesh of one device changes
nothing, so there is no second code path.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

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
    "rank": None,  # of a low-rank adapter
}


def mesh(sizes: Mapping[str, int], devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A mesh over `devices` (default: all) with `sizes` of `AXES`; absent axes are 1, one may be -1: what is left.

    ValueError where the sizes do not multiply to the number of devices.
    """
    devices = jax.devices() if devices is None else devices
    unknown = sorted(set(sizes) - set(AXES))
    if unknown:
        raise ValueError(f"a mesh has no axis {', '.join(unknown)}: its axes are {', '.join(AXES)}")
    shape = [sizes.get(axis, 1) for axis in AXES]
    known = int(np.prod([size for size in shape if size != -1]))
    if shape.count(-1) == 1 and known > 0 and len(devices) % known == 0:
        shape[shape.index(-1)] = len(devices) // known
    if min(shape) < 1 or int(np.prod(shape)) != len(devices):
        asked = ", ".join(f"{axis}={size}" for axis, size in zip(AXES, shape, strict=True))
        raise ValueError(f"a mesh of {asked} does not use the {len(devices)} devices there are: one size may be -1")
    return jax.make_mesh(shape, AXES, axis_types=(AxisType.Auto,) * len(AXES), devices=devices)


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
    return jax.device_put(params, of_parameters(config, mesh))


def place_rows(batch: Any, mesh: Mesh, axis: int = 0) -> Any:
    """A batch, any tree of arrays, with `axis` of each leaf divided over `ROWS` where its length allows."""
    rows = mesh.shape["data"] * mesh.shape["fsdp"]

    def one(leaf: jax.Array) -> jax.Array:
        divides = leaf.ndim > axis and leaf.shape[axis] % rows == 0
        return jax.device_put(
            leaf, NamedSharding(mesh, PartitionSpec(*[None] * axis, ROWS) if divides else PartitionSpec())
        )

    return jax.tree.map(one, batch)


def divide_rows(x: jax.Array) -> jax.Array:
    """Inside `jax.set_mesh`: activations [B, ...] kept divided by rows, so that XLA gathers weights and not these."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or x.shape[0] % (mesh.shape["data"] * mesh.shape["fsdp"]):
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(ROWS))


def shard_bytes(leaf: Any) -> int:
    """Bytes of one device's part of an array or a `jax.ShapeDtypeStruct` with a sharding."""
    return int(np.prod(leaf.sharding.shard_shape(leaf.shape))) * leaf.dtype.itemsize
