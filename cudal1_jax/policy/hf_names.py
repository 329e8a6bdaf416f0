"""Hugging Face's tensor names: one table, since all architectures here share it, each with the rows it has.

Theirs are [out, in] and one tensor per layer and expert; ours are [layers, in, out] and [layers, experts, in, out].
"""

from collections.abc import Iterator, Sequence

from cudal1_jax.policy import parameters
from cudal1_jax.policy.config import DecoderConfig

OUTSIDE = {"embed": "model.embed_tokens.weight", "final_norm": "model.norm.weight", "unembed": "lm_head.weight"}

# our name -> theirs, after "model.layers.<layer>."
IN_LAYERS = {
    "attn_norm": "input_layernorm.weight",
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "q_bias": "self_attn.q_proj.bias",
    "k_bias": "self_attn.k_proj.bias",
    "v_bias": "self_attn.v_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "q_down": "self_attn.q_a_proj.weight",
    "q_latent_norm": "self_attn.q_a_layernorm.weight",
    "q_up": "self_attn.q_b_proj.weight",
    "kv_down": "self_attn.kv_a_proj_with_mqa.weight",
    "kv_latent_norm": "self_attn.kv_a_layernorm.weight",
    "kv_up": "self_attn.kv_b_proj.weight",
    "mlp_norm": "post_attention_layernorm.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
    "router": "mlp.gate.weight",
    "router_bias": "mlp.gate.e_score_correction_bias",
    "expert_gate": "mlp.experts.{expert}.gate_proj.weight",
    "expert_up": "mlp.experts.{expert}.up_proj.weight",
    "expert_down": "mlp.experts.{expert}.down_proj.weight",
    "shared_gate": "mlp.shared_experts.gate_proj.weight",
    "shared_up": "mlp.shared_experts.up_proj.weight",
    "shared_down": "mlp.shared_experts.down_proj.weight",
}


def first_layer(config: DecoderConfig, name: str) -> int:
    """The layer of the model that row 0 of our array `name` belongs to."""
    return config.experts.dense_layers if config.experts is not None and name in parameters.OF_EXPERTS else 0


def stored(config: DecoderConfig, name: str, row: Sequence[int]) -> str:
    """Their name of our `name`'s part at `row`: () outside the layers, (layer,) or (layer, expert)."""
    if name in OUTSIDE:
        return OUTSIDE[name]
    expert = row[1] if len(row) > 1 else ""
    return f"model.layers.{row[0] + first_layer(config, name)}." + IN_LAYERS[name].format(expert=expert)


def rows(name: str, shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All rows of an array of ours for which there is a tensor of theirs."""
    if name in OUTSIDE:
        yield ()
    elif name.startswith("expert_"):
        yield from ((layer, expert) for layer in range(shape[0]) for expert in range(shape[1]))
    else:
        yield from ((layer,) for layer in range(shape[0]))


def transposed(name: str, row_ndim: int) -> bool:
    """Whether a part of so many axes is the transpose of theirs: every matrix but the vocabulary's."""
    return name not in OUTSIDE and row_ndim == 2
