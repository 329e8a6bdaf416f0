"""Logits of transformers' own PyTorch model from the embedded GGUF file.

    python tests/cudal1_jax/policy/reference_logits.py

writes reference_logits.npz beside this file, for runs without PyTorch: a chat prompt, its logits at 512 fixed
vocabulary ids, the likeliest id at every position, and a greedy continuation.
"""

from pathlib import Path

import numpy as np

from cudal1_jax.policy import gguf, tokenizer

STORED = Path(__file__).with_suffix(".npz")
REQUEST = "Write a CUDA kernel that multiplies 2 vectors of length 1024 element by element."
GREEDY_TOKENS = 24


def prompt_ids() -> list[int]:
    return tokenizer.load().render_chat(REQUEST)


def torch_model():
    """transformers' Llama with transformers' own mapping of the GGUF tensors, in float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    path = str(gguf.embedded_path())
    config = LlamaConfig(**load_gguf_checkpoint(path)["config"])
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    tensors = load_gguf_checkpoint(path, return_tensors=True, model_to_load=model)["tensors"]
    model = LlamaForCausalLM(config).float().eval()
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if missing != ["lm_head.weight"] or unexpected:  # tied to the embedding
        raise RuntimeError(f"transformers maps the file otherwise: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model


def torch_logits(model, ids: list[int]) -> np.ndarray:
    """Logits [T, V]."""
    import torch

    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def main() -> None:
    import torch

    model, ids = torch_model(), prompt_ids()
    logits = torch_logits(model, ids)
    columns = np.sort(np.random.default_rng(0).choice(logits.shape[1], 512, replace=False))
    with torch.no_grad():
        continued = model.generate(torch.tensor([ids]), max_new_tokens=GREEDY_TOKENS, do_sample=False)[0, len(ids) :]
    np.savez_compressed(
        STORED,
        ids=np.array(ids, np.int32),
        columns=columns.astype(np.int32),
        logits=logits[:, columns],
        likeliest=logits.argmax(-1).astype(np.int32),
        greedy=continued.numpy().astype(np.int32),
    )
    print(f"wrote {STORED}: {len(ids)} positions, logits from {logits.min():.1f} to {logits.max():.1f}")


if __name__ == "__main__":
    main()
