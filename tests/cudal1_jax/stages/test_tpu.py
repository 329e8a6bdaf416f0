"""The run's programs are compiled ahead of time for TPU chips that are not there: nothing of it needs a GPU."""

import dataclasses

import pytest

from cudal1_jax.stages import dry_run

pytestmark = [pytest.mark.tpu, pytest.mark.slow]

CHIP_BYTES = 16 * 10**9  # of a v5e


@pytest.mark.parametrize(
    ("topology", "sizes"),
    [("v5e:4x4", {"fsdp": 16}), ("v5e:4x4", {"fsdp": 4, "tensor": 4}), ("v5e:16x16", {"data": 4, "fsdp": 64})],
)
def test_update_and_rollout_compile_for_a_topology_and_fit(toy, topology, sizes, capsys):
    config = toy.config()
    config.mesh.update(sizes)
    config.rollout.prompts = config.mesh.data * config.mesh.fsdp
    config.policy.rollout_dtype = config.policy.update_dtype = "bfloat16"
    config.learn.full = True
    config.learn.remat = "layer"
    shape = toy.policy(config).config  # divided evenly by every mesh above
    model = dataclasses.replace(shape, width=512, mlp_width=1024, heads=8, key_heads=4, head_size=64, vocabulary=4096)
    text, fits = dry_run.run(config, model, topology=topology, bytes_per_device=CHIP_BYTES)
    with capsys.disabled():
        print(f"\n{text}")
    assert f"(TPU {topology})" in text
    assert fits
