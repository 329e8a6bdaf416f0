"""Tiny models of every architecture, as config.json describes them, and transformers' own results for them.

    python tests/cudal1_jax/policy/architectures.py

writes architectures.npz beside this file, for runs without PyTorch: logits and the loss's gradients, projected.
"""

from pathlib import Path
from typing import Any

import numpy as np

from cudal1_jax.policy import hf_config, hf_names, parameters
from cudal1_jax.policy.config import DecoderConfig

STORED = Path(__file__).with_suffix(".npz")
TOKENS = np.random.default_rng(3).integers(0, 61, (2, 23)).astype(np.int32)
TOLERANCE = 2e-4

COMMON: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 256, "rope_theta": 500.0,
    "tie_word_embeddings": False,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
FIELDS: dict[str, dict[str, Any]] = {
    "llama": COMMON | {"model_type": "llama", "rope_scaling": LLAMA3},
    "qwen2": COMMON | {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": COMMON | {"model_type": "qwen3", "head_dim": 16, "rope_scaling": YARN},
    "qwen3_moe": COMMON
    | {
        "model_type": "qwen3_moe", "head_dim": 16, "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True,
        "moe_intermediate_size": 24,
    },
    "deepseek_v3": COMMON
    | {
        "model_type": "deepseek_v3", "num_key_value_heads": 4, "q_lora_rank": 24,
        "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "n_routed_experts": 8,
        "n_group": 4, "topk_group": 2, "num_experts_per_tok": 3, "n_shared_experts": 2, "moe_intermediate_size": 24,
        "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
        "rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.7},
    },
}  # fmt: skip


def model(architecture: str) -> tuple[DecoderConfig, dict[str, np.ndarray]]:
    """Config and parameters, drawn so that no norm, bias or gate is neutral."""
    config = hf_config.read(FIELDS[architecture])
    draw = np.random.default_rng(11)

    def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
        x = 0.2 * draw.standard_normal(shape)
        return (1 + x if name.endswith("norm") else x).astype(np.float32)

    return config, {name: drawn(name, leaf.shape) for name, leaf in sorted(parameters.abstract(config).items())}


def summary(gradients: dict[str, np.ndarray]) -> np.ndarray:
    """Eight numbers of each parameter's gradient [names, 8], in order of names: products with fixed directions."""
    rows = []
    for name in sorted(gradients):
        flat = np.asarray(gradients[name], np.float64).ravel()
        rows.append(np.random.default_rng(flat.size).standard_normal((8, flat.size)) @ flat / np.sqrt(flat.size))
    return np.stack(rows)


def torch_results(folder: Path, config: DecoderConfig) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Logits [B, T, V] of the model that transformers loads from `folder`, and gradients of its loss by our names."""
    import torch
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    tokens = torch.tensor(TOKENS, dtype=torch.long)
    output = loaded(tokens, labels=tokens)
    output.loss.backward()
    theirs = {name: value.grad.numpy() for name, value in loaded.named_parameters()}
    for name in [name for name in theirs if name.endswith("gate_up_proj")]:  # transformers fuses what the files do not
        inner = theirs[name].shape[1] // 2
        for expert, (fused, down) in enumerate(zip(theirs[name], theirs[name.replace("gate_up", "down")], strict=True)):
            at = name.replace("gate_up_proj", f"{expert}.")
            theirs[f"{at}gate_proj.weight"], theirs[f"{at}up_proj.weight"] = fused[:inner], fused[inner:]
            theirs[f"{at}down_proj.weight"] = down
    return output.logits.detach().numpy(), _ours(config, theirs)


def _ours(config: DecoderConfig, theirs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    gradients = {}
    for name, leaf in parameters.abstract(config).items():
        if name == "router_bias":  # a buffer of theirs, which has no gradient
            gradients[name] = np.zeros(leaf.shape, np.float32)
            continue
        gradients[name] = np.empty(leaf.shape, np.float32)
        for row in hf_names.rows(name, leaf.shape):
            part = theirs[hf_names.stored(config, name, row)]
            gradients[name][row] = part.T if hf_names.transposed(name, part.ndim) else part
    return gradients


def main() -> None:
    import tempfile

    import jax.numpy as jnp

    from cudal1_jax.policy import checkpoint

    stored = {}
    for architecture in FIELDS:
        config, params = model(architecture)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.save(folder, config, {name: jnp.asarray(x) for name, x in params.items()})
            logits, gradients = torch_results(Path(folder), config)
        stored[f"{architecture}.logits"] = logits[:, ::5].astype(np.float32)
        stored[f"{architecture}.gradients"] = summary(gradients)
        print(f"{architecture}: logits from {logits.min():.1f} to {logits.max():.1f}")
    np.savez_compressed(STORED, **stored)
    print(f"wrote {STORED}, {STORED.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
