"""Shapes of published models, for planning without their files; a model that is loaded brings its own config.json."""

from cudal1_jax.policy.config import DecoderConfig, Experts, Latent, YarnScaling


def _smollm2(layers: int, width: int, mlp_width: int, heads: int, key_heads: int, rope_theta: float) -> DecoderConfig:
    return DecoderConfig(
        layers=layers, width=width, mlp_width=mlp_width, heads=heads, key_heads=key_heads, head_size=64,
        vocabulary=49_152, rope_theta=rope_theta, norm_epsilon=1e-5, context=8_192, tied_embeddings=True,
    )  # fmt: skip


def _qwen2(
    layers: int, width: int, mlp_width: int, heads: int, key_heads: int, vocabulary: int, tied: bool
) -> DecoderConfig:
    return DecoderConfig(
        layers=layers, width=width, mlp_width=mlp_width, heads=heads, key_heads=key_heads, head_size=width // heads,
        vocabulary=vocabulary, rope_theta=1e6, norm_epsilon=1e-6, context=32_768, tied_embeddings=tied, qkv_bias=True,
    )  # fmt: skip


def _qwen3(
    layers: int, width: int, mlp_width: int, heads: int, key_heads: int, tied: bool, experts: Experts | None = None
) -> DecoderConfig:
    return DecoderConfig(
        layers=layers, width=width, mlp_width=mlp_width, heads=heads, key_heads=key_heads, head_size=128,
        vocabulary=151_936, rope_theta=1e6, norm_epsilon=1e-6, context=40_960, tied_embeddings=tied, qk_norm=True,
        experts=experts,
    )  # fmt: skip


DEEPSEEK_V3 = DecoderConfig(
    layers=61, width=7_168, mlp_width=18_432, heads=128, key_heads=128, head_size=192, vocabulary=129_280,
    rope_theta=1e4, norm_epsilon=1e-6, context=163_840, tied_embeddings=False,
    rope_scaling=YarnScaling(factor=40.0, original_context=4_096, mscale=1.0, mscale_all=1.0),
    experts=Experts(
        count=256, active=8, mlp_width=2_048, normalised=True, gate="sigmoid", scale=2.5, groups=8, active_groups=4,
        shared_width=2_048, dense_layers=3,
    ),
    latent=Latent(rank=512, query_rank=1_536, plain_size=128, rotary_size=64, value_size=128),
)  # fmt: skip

SIZES: dict[str, DecoderConfig] = {
    "SmolLM2-135M": _smollm2(30, 576, 1_536, 9, 3, 1e5),
    "SmolLM2-360M": _smollm2(32, 960, 2_560, 15, 5, 1e5),
    "SmolLM2-1.7B": _smollm2(24, 2_048, 8_192, 32, 32, 1.3e5),
    "Qwen2.5-Coder-0.5B": _qwen2(24, 896, 4_864, 14, 2, 151_936, tied=True),
    "Qwen2.5-Coder-1.5B": _qwen2(28, 1_536, 8_960, 12, 2, 151_936, tied=True),
    "Qwen2.5-Coder-3B": _qwen2(36, 2_048, 11_008, 16, 2, 151_936, tied=True),
    "Qwen2.5-Coder-7B": _qwen2(28, 3_584, 18_944, 28, 4, 152_064, tied=False),
    "Qwen2.5-Coder-14B": _qwen2(48, 5_120, 13_824, 40, 8, 152_064, tied=False),
    "Qwen2.5-Coder-32B": _qwen2(64, 5_120, 27_648, 40, 8, 152_064, tied=False),
    "Qwen3-0.6B": _qwen3(28, 1_024, 3_072, 16, 8, tied=True),
    "Qwen3-1.7B": _qwen3(28, 2_048, 6_144, 16, 8, tied=True),
    "Qwen3-4B": _qwen3(36, 2_560, 9_728, 32, 8, tied=True),
    "Qwen3-8B": _qwen3(36, 4_096, 12_288, 32, 8, tied=False),
    "Qwen3-14B": _qwen3(40, 5_120, 17_408, 40, 8, tied=False),
    "Qwen3-32B": _qwen3(64, 5_120, 25_600, 64, 8, tied=False),
    "Qwen3-30B-A3B": _qwen3(
        48, 2_048, 6_144, 32, 4, tied=False, experts=Experts(count=128, active=8, mlp_width=768, normalised=True)
    ),
    "DeepSeek-V3-671B": DEEPSEEK_V3,
}
