"""config.json of Hugging Face models to `DecoderConfig` and back. What is not understood is refused, never ignored."""

from collections.abc import Mapping
from typing import Any

from cudal1_jax.policy.config import DecoderConfig, Experts, Latent, Llama3Scaling, YarnScaling

CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}

# fields that would change the model, and the one value of each that is computed
FIXED: dict[str, Any] = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "use_sliding_window": False,
    "decoder_sparse_step": 1,
    "moe_layer_freq": 1,
    "rope_interleave": True,
    "partial_rotary_factor": 1.0,
    "quantization_config": None,
}
PLAIN_ROPE = (None, "default")


def read(fields: Mapping[str, Any]) -> DecoderConfig:
    """The shape that config.json describes. ValueError, with the field, for what is missing or not supported."""
    kind = fields.get("model_type")
    if kind not in CLASSES:
        raise ValueError(f"config.json has model_type {kind!r}; supported are {', '.join(CLASSES)}")
    for name, value in FIXED.items():
        if fields.get(name) not in (None, value):
            raise ValueError(f"config.json has {name} = {fields[name]!r}; only {value!r} is supported")
    try:
        return _read(kind, fields)
    except KeyError as error:
        raise ValueError(f"config.json of a {kind} model lacks {error.args[0]!r}") from error


def _read(kind: str, fields: Mapping[str, Any]) -> DecoderConfig:
    theta, scaling = _rope(fields)
    latent = _latent(fields) if kind == "deepseek_v3" else None
    heads = fields["num_attention_heads"]
    if latent is not None:
        head_size = latent.plain_size + latent.rotary_size
    else:
        head_size = fields.get("head_dim") or fields["hidden_size"] // heads
    experts = {"qwen3_moe": _qwen_experts, "deepseek_v3": _deepseek_experts}.get(kind)
    return DecoderConfig(
        layers=fields["num_hidden_layers"],
        width=fields["hidden_size"],
        mlp_width=fields["intermediate_size"],
        heads=heads,
        key_heads=heads if latent is not None else fields["num_key_value_heads"],
        head_size=head_size,
        vocabulary=fields["vocab_size"],
        rope_theta=float(theta),
        norm_epsilon=fields["rms_norm_eps"],
        context=fields["max_position_embeddings"],
        tied_embeddings=fields.get("tie_word_embeddings", False),
        qkv_bias=kind == "qwen2",
        qk_norm=kind in ("qwen3", "qwen3_moe"),
        rope_scaling=scaling,
        experts=None if experts is None else experts(fields),
        latent=latent,
    )


def _rope(fields: Mapping[str, Any]) -> tuple[float, Llama3Scaling | YarnScaling | None]:
    """Base and scaling, from transformers' present form (`rope_parameters`) or the earlier one (`rope_scaling`)."""
    rope = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    theta = rope["rope_theta"] if "rope_theta" in rope else fields["rope_theta"]
    kind = rope.get("rope_type", rope.get("type"))
    if kind in PLAIN_ROPE:
        return theta, None
    if kind == "llama3":
        return theta, Llama3Scaling(
            factor=rope["factor"],
            original_context=rope["original_max_position_embeddings"],
            low=rope["low_freq_factor"],
            high=rope["high_freq_factor"],
        )
    if kind == "yarn" and rope.get("truncate", True):
        return theta, YarnScaling(
            factor=rope["factor"],
            original_context=rope["original_max_position_embeddings"],
            fast=rope.get("beta_fast") or 32.0,
            slow=rope.get("beta_slow") or 1.0,
            mscale=rope.get("mscale") or 0.0,
            mscale_all=rope.get("mscale_all_dim") or 0.0,
            magnitude=rope.get("attention_factor"),
        )
    raise ValueError(f"config.json has rotary scaling {dict(rope)}; supported are llama3 and yarn")


def _latent(fields: Mapping[str, Any]) -> Latent:
    return Latent(
        rank=fields["kv_lora_rank"],
        query_rank=fields["q_lora_rank"],
        plain_size=fields["qk_nope_head_dim"],
        rotary_size=fields["qk_rope_head_dim"],
        value_size=fields["v_head_dim"],
    )


def _qwen_experts(fields: Mapping[str, Any]) -> Experts:
    dense = sorted(fields.get("mlp_only_layers") or [])
    if dense != list(range(len(dense))):
        raise ValueError(f"config.json has mlp_only_layers {dense}; only the first layers can be without experts")
    return Experts(
        count=fields["num_experts"] if "num_experts" in fields else fields["num_local_experts"],
        active=fields["num_experts_per_tok"],
        mlp_width=fields["moe_intermediate_size"],
        normalised=fields["norm_topk_prob"],
        dense_layers=len(dense),
    )


def _deepseek_experts(fields: Mapping[str, Any]) -> Experts:
    if fields.get("scoring_func", "sigmoid") != "sigmoid" or fields.get("topk_method", "noaux_tc") != "noaux_tc":
        raise ValueError("config.json has another gate than DeepSeek-V3's (sigmoid, noaux_tc)")
    return Experts(
        count=fields["n_routed_experts"],
        active=fields["num_experts_per_tok"],
        mlp_width=fields["moe_intermediate_size"],
        normalised=fields["norm_topk_prob"],
        gate="sigmoid",
        scale=fields["routed_scaling_factor"],
        groups=fields["n_group"],
        active_groups=fields["topk_group"],
        shared_width=fields["n_shared_experts"] * fields["moe_intermediate_size"],
        dense_layers=fields["first_k_dense_replace"],
    )


def kind_of(config: DecoderConfig) -> str:
    """transformers' model_type. ValueError where none of those known computes what the config says."""
    experts = config.experts
    if config.latent is not None and experts is not None and experts.gate == "sigmoid":
        return "deepseek_v3"
    if config.latent is None and not config.qkv_bias:
        if experts is None:
            return "qwen3" if config.qk_norm else "llama"
        plain = (experts.gate, experts.scale, experts.groups, experts.shared_width) == ("softmax", 1.0, 1, 0)
        if config.qk_norm and plain:
            return "qwen3_moe"
    if config.latent is None and experts is None and not config.qk_norm:
        return "qwen2"
    raise ValueError(f"no architecture of {', '.join(CLASSES)} is {config}")


def write(config: DecoderConfig, dtype: str) -> dict[str, Any]:
    """The fields of config.json; `read` gives the config back. Token ids are the tokenizer's to add."""
    kind = kind_of(config)
    fields: dict[str, Any] = {
        "model_type": kind,
        "architectures": [CLASSES[kind]],
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_heads,
        "vocab_size": config.vocabulary,
        "rms_norm_eps": config.norm_epsilon,
        "max_position_embeddings": config.context,
        "tie_word_embeddings": config.tied_embeddings,
        "rope_theta": config.rope_theta,
        "rope_scaling": _written_scaling(config),
        "hidden_act": "silu",
        "torch_dtype": dtype,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if kind == "qwen2" and config.head_size * config.heads != config.width:
        raise ValueError(f"Qwen2 has heads of width / heads, not of {config.head_size}")
    if kind not in ("qwen2", "deepseek_v3"):
        fields["head_dim"] = config.head_size
    return fields | _written_latent(config) | _written_experts(config)


def _written_scaling(config: DecoderConfig) -> dict[str, Any] | None:
    match config.rope_scaling:
        case None:
            return None
        case Llama3Scaling() as scaling:
            written = {"rope_type": "llama3", "low_freq_factor": scaling.low, "high_freq_factor": scaling.high}
        case YarnScaling() as scaling:
            written = {"rope_type": "yarn", "beta_fast": scaling.fast, "beta_slow": scaling.slow}
            optional = {
                "mscale": scaling.mscale or None,
                "mscale_all_dim": scaling.mscale_all or None,
                "attention_factor": scaling.magnitude,
            }
            written |= {name: value for name, value in optional.items() if value is not None}
    return written | {"factor": scaling.factor, "original_max_position_embeddings": scaling.original_context}


def _written_latent(config: DecoderConfig) -> dict[str, Any]:
    latent = config.latent
    if latent is None:
        return {}
    return {
        "kv_lora_rank": latent.rank,
        "q_lora_rank": latent.query_rank,
        "qk_nope_head_dim": latent.plain_size,
        "qk_rope_head_dim": latent.rotary_size,
        "v_head_dim": latent.value_size,
        "rope_interleave": True,
    }


def _written_experts(config: DecoderConfig) -> dict[str, Any]:
    experts = config.experts
    if experts is None:
        return {}
    common = {
        "num_experts_per_tok": experts.active,
        "moe_intermediate_size": experts.mlp_width,
        "norm_topk_prob": experts.normalised,
    }
    if config.latent is None:
        return common | {"num_experts": experts.count, "mlp_only_layers": list(range(experts.dense_layers))}
    return common | {
        "n_routed_experts": experts.count,
        "routed_scaling_factor": experts.scale,
        "n_group": experts.groups,
        "topk_group": experts.active_groups,
        "n_shared_experts": experts.shared_width // experts.mlp_width,
        "first_k_dense_replace": experts.dense_layers,
        "num_nextn_predict_layers": 0,
    }
