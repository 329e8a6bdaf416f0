"""Arrays divided over simulated devices: the table of axes; training and sampling come out as on one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from jax.sharding import AbstractMesh, PartitionSpec

from cudal1_jax.policy import parameters, sharding
from cudal1_jax.policy.config import DecoderConfig

CHILD = Path(__file__).with_name("on_many_devices.py")
CONFIG = DecoderConfig(
    layers=2, width=16, mlp_width=24, heads=4, key_heads=2, head_size=4, vocabulary=50, rope_theta=1e4,
    norm_epsilon=1e-5, context=128, tied_embeddings=False,
)  # fmt: skip
EVERY_MESH = [
    {"data": 2, "fsdp": 2, "tensor": 2},
    {"fsdp": 8},
    {"data": 4, "tensor": 2},
    {"fsdp": 4, "tensor": 2},
]


@pytest.fixture
def mesh():
    return AbstractMesh((1, 8, 4, 1), sharding.AXES)


def test_every_axis_of_every_parameter_is_in_the_table():
    named = {name for axes in parameters.logical_axes(CONFIG).values() for name in axes}
    assert named <= set(sharding.RULES)


def test_a_length_that_the_mesh_does_not_divide_stays_whole(mesh):
    assert sharding.spec(("width", "mlp"), (16, 24), mesh) == PartitionSpec("fsdp", "tensor")
    assert sharding.spec(("vocabulary", "width"), (50, 16), mesh) == PartitionSpec(None, "fsdp")
    assert sharding.spec(("layers", "width"), (2, 12), mesh) == PartitionSpec(None, None)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"model": 1}, "no axis model"),
        ({"data": 2}, "data=2, fsdp=1, tensor=1, expert=1 needs other devices than the 1 there are"),
        ({"data": 0}, "needs other devices"),
        ({"data": -1, "fsdp": -1}, "one size may be -1"),
        ({"data": -1, "fsdp": 3}, "needs other devices"),
    ],
)
def test_a_mesh_that_does_not_fit_the_devices_is_refused(sizes, complaint):
    with pytest.raises(ValueError, match=complaint):
        sharding.mesh(sizes, jax.devices()[:1])


def test_one_size_may_be_what_is_left():
    assert dict(sharding.mesh({"fsdp": -1}, jax.devices()[:1]).shape) == dict.fromkeys(sharding.AXES, 1)


def begin(meshes, modes, devices, *processes):
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, str(CHILD), json.dumps(meshes), ",".join(modes), *processes]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(child):
    out, err = child.communicate(timeout=280)
    assert child.returncode == 0, err
    return json.loads(out.splitlines()[-1])  # after what the collectives of a CPU have to say


def outcomes(meshes, modes):
    return end(begin(meshes, modes, 8))


def assert_as_on_one_device(found):
    assert found["metrics"] < 2e-6
    assert found["moments"] < 1e-8
    assert found["trained"] < 2e-5  # a step of 1e-2, and Adam divides rounding by rounding where gradients are near 0
    assert found["logprobs"] < 2e-6
    assert found["other_tokens"] == 0


def test_an_update_and_samples_on_eight_devices_are_those_of_one():
    (found,) = outcomes(EVERY_MESH[:1], ["adapter"]).values()
    assert_as_on_one_device(found)
    assert found["trained_share"] <= 0.5  # of the bytes, on each device
    assert found["moments_share"] <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["adapter", "full"])
def test_every_mesh_and_mode_gives_what_one_device_gives(mode):
    for name, found in outcomes(EVERY_MESH, [mode]).items():
        assert_as_on_one_device(found)
        if mode == "full" and '"fsdp": 8' in name:
            assert found["trained_share"] == found["moments_share"] == 0.125


@pytest.mark.slow
def test_two_processes_make_the_update_and_samples_of_one_device():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    children = [begin([{"fsdp": 2, "tensor": 2}], ["adapter"], 2, address, "2", str(number)) for number in range(2)]
    for child in children:
        (found,) = end(child).values()
        assert_as_on_one_device(found)
        assert found["trained_share"] <= 0.5
