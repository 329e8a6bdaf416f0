"""Says what a run would take of each device's memory, and on how many devices it fits; nothing is allocated."""

import copy
import math
import os
from collections.abc import Mapping

import jax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from cudal1_jax.policy import parameters, sharding
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import memory
from cudal1_jax.stages.memory import Memory

LARGEST = 4096  # devices of a mesh that is looked for

NO_TPU = {  # what libtpu must be told on a machine that has none
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-16",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}

PARTS = {
    "parameters": "of the base, for update and rollout",
    "trained": "float32 master values",
    "optimizer": "moments in {moment_dtype}",
    "update": "activations and gradients, while it updates",
    "cache": "keys and values, while it samples",
    "decoding": "other arrays and weights laid out for it, while it samples",
}


def simulate(topology: str) -> None:
    """Devices of any number on this machine, on which programs can be compiled. Before JAX is used."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if not topology:  # whose devices are simulated by libtpu
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={LARGEST}"


def run(config: ConfigDict, model: DecoderConfig, *, topology: str, bytes_per_device: int) -> tuple[str, bool]:
    """A table of bytes for the mesh of `config.mesh`, and whether it fits.

    `topology`: of a TPU, as "v5e:4x4", whose compiler then says what temporaries take (libtpu is needed, no TPU); "":
    the CPU compiler, which fuses less. Where the run does not fit, the text names the smallest mesh with a larger
    `fsdp` on which it does. RunError: no such mesh, or samples that cannot be divided over it.
    """
    sizes = dict(config.mesh)
    devices = _devices(topology)
    mesh = _mesh(sizes, devices)
    found = _plan(config, model, mesh)
    fits = found.peak <= bytes_per_device
    text = _table(config, model, mesh, found, topology)
    limit = f"{bytes_per_device / 1e9:g} GB"
    if fits:
        return f"{text}\nfits in {limit}", True
    return f"{text}\ndoes not fit in {limit}: {_smallest(config, model, devices, bytes_per_device)}", False


def _devices(topology: str) -> list[jax.Device]:
    if not topology:
        return jax.devices()
    from jax.experimental import topologies

    os.environ.update({key: value for key, value in NO_TPU.items() if key not in os.environ})
    try:
        return list(topologies.get_topology_desc(platform="tpu", topology_name=topology).devices)
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"--topology={topology}: {str(error).splitlines()[0]}; it needs libtpu (pip install 'cudal1-jax[tpu]') and"
            " a name such as v5e:4x4"
        ) from error


def _mesh(sizes: dict[str, int], devices: list[jax.Device]) -> Mesh:
    if -1 in sizes.values():
        raise RunError("config.mesh: say how many devices an axis has; a dry run cannot count those of another machine")
    try:
        return sharding.mesh(sizes, devices)
    except ValueError as error:
        raise RunError(f"config.mesh: {error}") from error


def _plan(config: ConfigDict, model: DecoderConfig, mesh: Mesh) -> Memory:
    try:
        return memory.plan(config, model, mesh)
    except ValueError as error:
        raise RunError(str(error)) from error


def _smallest(config: ConfigDict, model: DecoderConfig, devices: list[jax.Device], bytes_per_device: int) -> str:
    """The smallest mesh that takes the run: `fsdp` is doubled, every other axis stays."""
    wider = copy.deepcopy(config)
    others = wider.mesh.tensor * wider.mesh.expert
    resident = memory.resident_bytes(config, model)
    while math.prod(wider.mesh.values()) * 2 <= len(devices):
        wider.mesh.fsdp *= 2
        wider.rollout.prompts = max(wider.rollout.prompts, wider.mesh.data * wider.mesh.fsdp)
        if resident > bytes_per_device * wider.mesh.fsdp * others:
            continue  # not even its parameters fit: no need to compile
        found = _plan(wider, model, _mesh(dict(wider.mesh), devices))
        if found.peak <= bytes_per_device:
            return (
                f"the smallest mesh that takes it is {_named(dict(wider.mesh))}, {found.peak / 1e9:.1f} GB on each of"
                f" {math.prod(wider.mesh.values())} devices, with {wider.rollout.prompts} prompts in an iteration"
            )
    return f"nor does it on {math.prod(wider.mesh.values())} devices"


def _table(config: ConfigDict, model: DecoderConfig, mesh: Mesh, found: Memory, topology: str) -> str:
    numbers = sum(math.prod(leaf.shape) for leaf in parameters.abstract(model).values())
    of = f"TPU {topology}" if topology else "simulated devices; temporaries as the CPU compiler has them"
    lines = [f"{numbers / 1e6:,.0f} M parameters on {_named(mesh.shape)} ({of}); GB on each device:"]
    lines += [
        f"  {name:<11}{getattr(found, name) / 1e9:9.3f}  {what.format(**config.learn)}" for name, what in PARTS.items()
    ]
    return "\n".join([*lines, f"  {'peak':<11}{found.peak / 1e9:9.3f}"])


def _named(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1) or "one device"
