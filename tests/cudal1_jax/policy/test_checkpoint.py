"""Model folders: what is written comes back, divided or not, and what does not fit is refused."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cudal1_jax.policy import checkpoint, hf_config, parameters, sharding
from cudal1_jax.policy.config import DecoderConfig, Experts, Latent, Llama3Scaling, YarnScaling

MIXED = DecoderConfig(
    layers=3, width=8, mlp_width=12, heads=2, key_heads=2, head_size=10, vocabulary=20, rope_theta=500.0,
    norm_epsilon=1e-6, context=64, tied_embeddings=False,
    rope_scaling=YarnScaling(4.0, 16, mscale=1.0, mscale_all=0.5),
    experts=Experts(4, 2, 6, True, "sigmoid", 2.5, groups=2, active_groups=1, shared_width=6, dense_layers=1),
    latent=Latent(rank=4, query_rank=6, plain_size=6, rotary_size=4, value_size=5),
)  # fmt: skip


def drawn(config: DecoderConfig) -> dict[str, jax.Array]:
    rng = np.random.default_rng(0)
    shapes = parameters.abstract(config)
    return {name: jnp.asarray(rng.standard_normal(leaf.shape), leaf.dtype) for name, leaf in shapes.items()}


@pytest.mark.parametrize("file_bytes", [1_000, 10**9])
def test_what_is_saved_comes_back(tmp_path, file_bytes):
    params = drawn(MIXED)
    checkpoint.save(tmp_path, MIXED, params, file_bytes=file_bytes)
    files = list(tmp_path.glob("*.safetensors"))
    assert len(files) == 1 if file_bytes == 10**9 else len(files) > 5
    config, seen = checkpoint.load(tmp_path, jnp.float32)
    assert config == MIXED
    jax.tree.map(np.testing.assert_array_equal, seen, params)


def test_it_comes_divided_over_a_mesh_in_the_dtype_asked_for(tmp_path):
    params = drawn(MIXED)
    checkpoint.save(tmp_path, MIXED, params)
    devices = jax.devices()
    sizes = {"fsdp": 2, "expert": 2} if len(devices) >= 4 else {}
    mesh = sharding.mesh(sizes, devices)
    _, seen = checkpoint.load(tmp_path, jnp.bfloat16, mesh)
    for name, leaf in seen.items():
        np.testing.assert_array_equal(leaf, params[name].astype(jnp.bfloat16))
        assert leaf.sharding == sharding.of_parameters(MIXED, mesh)[name]


def test_bfloat16_is_kept(tmp_path):
    params = {name: leaf.astype(jnp.bfloat16) for name, leaf in drawn(MIXED).items()}
    checkpoint.save(tmp_path, MIXED, params, {"eos_token_id": 7})
    _, seen = checkpoint.load(tmp_path, jnp.bfloat16)
    jax.tree.map(np.testing.assert_array_equal, seen, params)
    fields = json.loads((tmp_path / "config.json").read_text())
    assert (fields["torch_dtype"], fields["eos_token_id"]) == ("bfloat16", 7)


def test_tensors_have_their_names_and_orientation(tmp_path, config, params):
    checkpoint.save(tmp_path, config, params)
    tensors = load_file(tmp_path / "model.safetensors")
    assert "lm_head.weight" not in tensors
    np.testing.assert_array_equal(tensors["model.layers.1.self_attn.k_proj.weight"], params["k"][1].T)
    np.testing.assert_array_equal(tensors["model.embed_tokens.weight"], params["embed"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("model.norm.weight"), "lack model.norm.weight"),
        (lambda tensors: tensors.update({"model.layers.0.self_attn.q_proj.bias": np.zeros(96)}), "does not explain"),
        (lambda tensors: tensors.update({"model.norm.weight": np.zeros(63, np.float32)}), r"\(63,\).*\(64,\)"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, config, params, change, message):
    checkpoint.save(tmp_path, config, params)
    tensors = load_file(tmp_path / "model.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=message):
        checkpoint.load(tmp_path, jnp.float32)


def test_what_changes_no_logit_is_passed_over(tmp_path, config, params):
    checkpoint.save(tmp_path, config, params)
    tensors = load_file(tmp_path / "model.safetensors")
    more = ("lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.2.eh_proj.weight")
    save_file(tensors | {name: np.zeros(3, np.float32) for name in more}, tmp_path / "model.safetensors")
    _, seen = checkpoint.load(tmp_path, jnp.float32)
    jax.tree.map(np.testing.assert_array_equal, seen, params)


@pytest.mark.parametrize("pattern", ["config.json", "model.safetensors", "model-00002-of-*.safetensors"])
def test_a_missing_file_is_named(tmp_path, config, params, pattern):
    checkpoint.save(tmp_path, config, params, file_bytes=90_000 if "of" in pattern else 10**9)
    (file,) = tmp_path.glob(pattern)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(file.name)):
        checkpoint.load(tmp_path, jnp.float32)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "gemma"), ("hidden_act", "gelu"), ("use_sliding_window", True), ("attention_bias", True),
        ("quantization_config", {"quant_method": "fp8"}), ("rope_scaling", {"rope_type": "longrope"}),
    ],
)  # fmt: skip
def test_an_unsupported_field_is_refused_by_name(config, field, value):
    with pytest.raises(ValueError, match="rotary" if field == "rope_scaling" else field):
        hf_config.read(hf_config.write(config, "float32") | {field: value})


def test_a_field_that_is_absent_is_named(config):
    fields = hf_config.write(config, "float32")
    del fields["num_hidden_layers"]
    with pytest.raises(ValueError, match="num_hidden_layers"):
        hf_config.read(fields)


def test_both_ways_of_writing_rotary_scaling_are_read(config):
    scaled = dataclasses.replace(config, rope_scaling=Llama3Scaling(8.0, 64, 1.0, 4.0))
    fields = hf_config.write(scaled, "float32")
    present = fields | {"rope_parameters": fields["rope_scaling"] | {"rope_theta": fields["rope_theta"]}}
    del present["rope_scaling"], present["rope_theta"]
    assert hf_config.read(present) == hf_config.read(fields) == scaled


def test_a_shape_of_no_known_architecture_cannot_be_written(config):
    with pytest.raises(ValueError, match="no architecture"):
        hf_config.write(dataclasses.replace(config, qkv_bias=True, qk_norm=True), "float32")
