"""Reads a GGUF file of a Llama, Qwen2 or Qwen3 model: config, float32 parameters in our layout, vocabulary."""

import dataclasses
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize

from cudal1_jax.policy import parameters
from cudal1_jax.policy.config import DecoderConfig


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """What a GGUF file says about its tokenizer."""

    tokens: list[str]  # [V], byte-level BPE spelling
    merges: list[str]  # "left right", best first
    control: list[str]  # tokens of type 3: never produced from plain text
    pre_tokenizer: str  # llama.cpp's name of the splitting rule, such as "smollm"
    bos: int
    eos: int
    pad: int  # often equal to eos: never build a mask from it
    chat_template: str  # Jinja


@dataclasses.dataclass(frozen=True)
class GgufFile:
    """The parts of a model file."""

    config: DecoderConfig
    params: dict[str, np.ndarray]  # names and shapes of `parameters.abstract(config)`, float32
    vocabulary: Vocabulary


CONTROL = 3  # gguf token type
ARCHITECTURES = ("llama", "qwen2", "qwen3")
INTERLEAVED = ("llama",)  # architectures whose files store rotary pairs side by side

# our stacked name -> the file's name inside "blk.<layer>."
STACKED = {
    "attn_norm": "attn_norm.weight",
    "q": "attn_q.weight",
    "k": "attn_k.weight",
    "v": "attn_v.weight",
    "o": "attn_output.weight",
    "q_bias": "attn_q.bias",
    "k_bias": "attn_k.bias",
    "v_bias": "attn_v.bias",
    "q_norm": "attn_q_norm.weight",
    "k_norm": "attn_k_norm.weight",
    "mlp_norm": "ffn_norm.weight",
    "gate": "ffn_gate.weight",
    "up": "ffn_up.weight",
    "down": "ffn_down.weight",
}


def read(path: str | Path) -> GgufFile:
    """Reads and dequantises the whole file (seconds). ValueError for a broken file or another architecture."""
    try:
        reader = GGUFReader(path)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a readable GGUF file ({error}): install or copy it anew") from error
    architecture = _field(reader, "general.architecture")
    if architecture not in ARCHITECTURES:
        raise ValueError(f"{path} has architecture {architecture!r}; only {', '.join(ARCHITECTURES)} can be read")
    raw = {tensor.name: tensor for tensor in reader.tensors}
    config = _config(reader, architecture, tied="output.weight" not in raw)
    arrays = {name: dequantize(tensor.data, tensor.tensor_type) for name, tensor in raw.items()}
    return GgufFile(config, _params(config, arrays, architecture in INTERLEAVED), _vocabulary(reader))


def _config(reader: GGUFReader, architecture: str, tied: bool) -> DecoderConfig:
    def value(name: str) -> int:
        return int(_field(reader, f"{architecture}.{name}"))

    if reader.get_field(f"{architecture}.rope.scaling.type") is not None:
        raise ValueError("the GGUF file stretches rotary positions, which is read from safetensors folders only")
    key_length = reader.get_field(f"{architecture}.attention.key_length")
    heads, width = value("attention.head_count"), value("embedding_length")
    return DecoderConfig(
        layers=value("block_count"),
        width=width,
        mlp_width=value("feed_forward_length"),
        heads=heads,
        key_heads=value("attention.head_count_kv"),
        head_size=width // heads if key_length is None else int(key_length.contents()),
        vocabulary=len(_field(reader, "tokenizer.ggml.tokens")),
        rope_theta=float(_field(reader, f"{architecture}.rope.freq_base")),
        norm_epsilon=float(_field(reader, f"{architecture}.attention.layer_norm_rms_epsilon")),
        context=value("context_length"),
        tied_embeddings=tied,
        qkv_bias=architecture == "qwen2",
        qk_norm=architecture == "qwen3",
    )


def _params(config: DecoderConfig, arrays: dict[str, np.ndarray], interleaved: bool) -> dict[str, np.ndarray]:
    params = {"embed": arrays["token_embd.weight"], "final_norm": arrays["output_norm.weight"]}
    if not config.tied_embeddings:
        params["unembed"] = arrays["output.weight"]
    heads = {"q": config.heads, "k": config.key_heads} if interleaved else {}
    for name in parameters.abstract(config).keys() - set(parameters.OUTSIDE_LAYERS):
        layers = [arrays[f"blk.{layer}.{STACKED[name]}"] for layer in range(config.layers)]
        if name in heads:
            layers = [half_split(layer, heads[name]) for layer in layers]
        params[name] = np.stack([layer.T for layer in layers])  # the file stores [out, in]; a norm is one-dimensional
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in params.items()}


def half_split(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a q or k weight [heads d, in] from the file's interleaved rotary pairs to half-split ones.

    Llama-architecture GGUF stores each head's rows as (0, d/2, 1, d/2 + 1, ...). Left as they are, the model still
    writes fluent text, with logits that are wrong by tens.
    """
    rows, inputs = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, inputs).swapaxes(1, 2).reshape(rows, inputs)


def _vocabulary(reader: GGUFReader) -> Vocabulary:
    def value(name: str):
        return _field(reader, f"tokenizer.{name}")

    tokens = value("ggml.tokens")
    types = value("ggml.token_type")
    eos = int(value("ggml.eos_token_id"))
    return Vocabulary(
        tokens=tokens,
        merges=value("ggml.merges"),
        control=[token for token, kind in zip(tokens, types, strict=True) if kind == CONTROL],
        pre_tokenizer=value("ggml.pre"),
        bos=int(value("ggml.bos_token_id")),
        eos=eos,
        pad=int(value("ggml.padding_token_id")),
        chat_template=value("chat_template"),
    )


def _field(reader: GGUFReader, name: str):
    field = reader.get_field(name)
    if field is None:
        raise ValueError(f"the GGUF file has no {name!r}: it is incomplete or of another kind of model")
    return field.contents()
