"""What a run leaves behind: an adapter, or all parameters, with or without a critic; and how these are read again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.learn import values
from cudal1_jax.policy import lora
from cudal1_jax.report.run_directory import RunDirectory
from cudal1_jax.stages import learning, policy


def test_all_parameters_come_back_in_the_dtype_asked_for(toy, tmp_path):
    begun = toy.policy(toy.config())
    trained = jax.tree.map(lambda x: x + 0.1, begun.params)
    learning.save(RunDirectory(tmp_path), begun, values.with_critic(trained, begun.config.width))
    read = policy.load_parameters(tmp_path / "model", begun.config, jnp.dtype("float32"))
    assert read.keys() == trained.keys()
    jax.tree.map(np.testing.assert_array_equal, read, dict(trained))
    narrow = policy.load_parameters(tmp_path / "model", begun.config, jnp.dtype("bfloat16"))
    assert {leaf.dtype for leaf in narrow.values()} == {jnp.dtype("bfloat16")}


def test_an_adapter_beside_a_critic_is_written_as_peft_reads_it(toy, tmp_path):
    begun = toy.policy(toy.config())
    learning.save(RunDirectory(tmp_path), begun, values.with_critic(begun.adapter, begun.config.width))
    assert lora.load(tmp_path / "adapter", begun.config).weights.keys() == begun.adapter.weights.keys()
    assert not (tmp_path / "model").exists()


def test_a_stage_that_trains_all_parameters_begins_with_the_adapter_merged_in(toy):
    begun = toy.policy(toy.config())
    assert learning.beginning(begun, full=False) is begun.adapter
    changed = dataclasses.replace(begun, adapter=jax.tree.map(lambda x: x + 0.1, begun.adapter))
    whole = learning.beginning(changed, full=True)
    differing = {name for name, leaf in whole.items() if not np.array_equal(leaf, begun.params[name])}
    assert differing == {"q", "v"}


def test_parameters_that_are_absent_damaged_or_of_another_shape_are_refused(toy, tmp_path):
    begun = toy.policy(toy.config())
    with pytest.raises(FileNotFoundError):
        policy.load_parameters(tmp_path, begun.config, jnp.dtype("float32"))
    policy.save_parameters(tmp_path, {**begun.params, "q": begun.params["q"][:1]})
    with pytest.raises(ValueError, match=r"parameters do not fit the config.*'q': \(\(1, 32, 32\), \(2, 32, 32\)\)"):
        policy.load_parameters(tmp_path, begun.config, jnp.dtype("float32"))
    (tmp_path / policy.PARAMETERS).write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=r"cannot be read .*: make or copy it anew"):
        policy.load_parameters(tmp_path, begun.config, jnp.dtype("float32"))
