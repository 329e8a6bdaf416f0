"""Adapters: unmerged equals merged, files are PEFT's, bad files are refused with a cure."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open

from cudal1_jax.policy import decoder, lora, shipped

forward = jax.jit(decoder.forward, static_argnums=0)
TOKENS = jnp.asarray([[5, 9, 2, 77, 31, 8]], jnp.int32)


def test_a_new_adapter_changes_nothing(config, params):
    fresh = lora.init(jax.random.key(0), config, rank=3, targets=("q",))
    plain = forward(config, params, TOKENS)
    np.testing.assert_array_equal(forward(config, params, TOKENS, adapter=fresh), plain)


@pytest.mark.parametrize("target", ["k", "o", "down", None])
def test_merged_equals_unmerged(config, params, adapter, target):
    weights = adapter.weights if target is None else {target: adapter.weights[target]}
    part = lora.Adapter(weights, adapter.scale)
    unmerged = forward(config, params, TOKENS, adapter=part)
    merged = forward(config, lora.merge(params, part), TOKENS)
    np.testing.assert_allclose(unmerged, merged, atol=5e-5)
    assert float(jnp.abs(unmerged - forward(config, params, TOKENS)).max()) > 1e-2


def test_scale_is_alpha_over_rank_and_static(config):
    adapter = lora.init(jax.random.key(0), config, rank=4, alpha=8, targets=("q", "v"))
    assert adapter.scale == 2.0
    assert adapter.rank == 4
    assert len(jax.tree.leaves(adapter)) == 4  # a and b of two targets; the scale is no leaf


def test_gradients_of_a_new_adapter_are_in_b_alone(config, params):
    fresh = lora.init(jax.random.key(0), config, rank=2, targets=("gate",))
    gradient = jax.grad(lambda a: jnp.sum(forward(config, params, TOKENS, adapter=a) ** 2))(fresh)
    assert not np.any(gradient.weights["gate"]["a"])
    assert np.all(np.any(gradient.weights["gate"]["b"], axis=(1, 2)))


def test_initial_values_depend_on_key_and_target(config):
    first, again, other = (lora.init(jax.random.key(k), config, rank=2) for k in (0, 0, 1))
    np.testing.assert_array_equal(first.weights["q"]["a"], again.weights["q"]["a"])
    assert np.any(first.weights["q"]["a"] != other.weights["q"]["a"])
    assert np.any(first.weights["gate"]["a"] != first.weights["up"]["a"])


def test_a_saved_adapter_comes_back_rounded_to_bfloat16(config, adapter, tmp_path):
    lora.save(tmp_path, adapter, base_model="some/base")
    back = lora.load(tmp_path, config)
    rounded = jax.tree.map(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), adapter)
    assert jax.tree.structure(back) == jax.tree.structure(adapter)
    jax.tree.map(np.testing.assert_array_equal, back, rounded)


def test_files_are_as_peft_writes_them(config, adapter, tmp_path):
    lora.save(tmp_path, adapter, base_model="some/base")
    settings = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (settings["peft_type"], settings["r"], settings["lora_alpha"]) == ("LORA", 4, 8)
    assert settings["base_model_name_or_path"] == "some/base"
    assert settings["target_modules"] == sorted(f"{n}_proj" for n in ("q", "k", "v", "o", "gate", "up", "down"))
    with safe_open(tmp_path / "adapter_model.safetensors", "numpy") as file:
        names = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        dtypes = {file.get_slice(name).get_dtype() for name in names}
    assert dtypes == {"BF16"}
    assert len(names) == config.layers * 7 * 2
    assert names["base_model.model.model.layers.1.self_attn.k_proj.lora_A.weight"] == (4, 64)
    assert names["base_model.model.model.layers.1.self_attn.k_proj.lora_B.weight"] == (32, 4)
    assert names["base_model.model.model.layers.0.mlp.down_proj.lora_A.weight"] == (4, 96)


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_a_missing_file_is_named(config, adapter, tmp_path, name):
    lora.save(tmp_path, adapter, base_model="some/base")
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"no {re.escape(name)} in"):
        lora.load(tmp_path, config)


def test_a_cut_file_is_refused(config, adapter, tmp_path):
    lora.save(tmp_path, adapter, base_model="some/base")
    path = tmp_path / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot be read"):
        lora.load(tmp_path, config)


@pytest.mark.parametrize(
    ("change", "message"), [({"layers": 3}, "belongs to another model"), ({"mlp_width": 97}, "maps 96 to 64")]
)
def test_an_adapter_of_another_model_is_refused(config, adapter, tmp_path, change, message):
    lora.save(tmp_path, adapter, base_model="some/base")
    with pytest.raises(ValueError, match=message):
        lora.load(tmp_path, dataclasses.replace(config, **change))


@pytest.mark.parametrize(("targets", "rank"), [((), 1), (("q", "query"), 1), (("q",), 0)])
def test_impossible_adapters_are_refused(config, targets, rank):
    with pytest.raises(ValueError, match=r"LoRA targets|rank must be"):
        lora.init(jax.random.key(0), config, rank, targets)


def test_an_absent_shipped_adapter_says_how_to_make_it(config, tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "adapter")
    assert not shipped.available()
    with pytest.raises(FileNotFoundError, match=r"--config=configs/sft\.py"):
        shipped.load(config)


def test_a_shipped_adapter_is_loaded(config, adapter, tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    lora.save(tmp_path, adapter, base_model="some/base")
    assert shipped.available()
    assert shipped.load(config).rank == adapter.rank
