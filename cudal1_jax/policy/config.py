"""What a decoder's shape is: one frozen record, read from the weight file and never assumed."""

import dataclasses
import math
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Llama3Scaling:
    """Rotary frequencies stretched to a longer context as Llama 3.1 does it: the slow ones, by `factor`."""

    factor: float
    original_context: int  # tokens, before stretching
    low: float  # turns over the original context below which a frequency is divided by `factor`
    high: float  # turns above which it stays; between both it is interpolated


@dataclasses.dataclass(frozen=True)
class YarnScaling:
    """Rotary frequencies stretched by YaRN (https://arxiv.org/abs/2309.00071), with DeepSeek's two `mscale`."""

    factor: float
    original_context: int  # tokens, before stretching
    fast: float = 32.0  # turns over the original context from which a frequency stays
    slow: float = 1.0  # turns up to which it is divided by `factor`
    mscale: float = 0.0  # 0: absent
    mscale_all: float = 0.0  # 0: absent; otherwise latent attention's scores are scaled as well
    magnitude: float | None = None  # factor of cosines and sines; None: derived from the fields above

    @property
    def cosine_factor(self) -> float:
        if self.magnitude is not None:
            return self.magnitude
        if self.mscale and self.mscale_all:
            return self._scale(self.mscale) / self._scale(self.mscale_all)
        return self._scale(1.0)

    @property
    def score_factor(self) -> float:
        """What latent attention multiplies its scores by."""
        return self._scale(self.mscale_all) ** 2 if self.mscale_all else 1.0

    def _scale(self, mscale: float) -> float:
        return 0.1 * mscale * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0


@dataclasses.dataclass(frozen=True)
class Experts:
    """A mixture of gated MLPs in the place of one, in every layer but the first `dense_layers`."""

    count: int  # E
    active: int  # experts per token
    mlp_width: int  # F of each expert
    normalised: bool  # weights of the active experts sum to `scale`
    gate: Literal["softmax", "sigmoid"] = "softmax"  # sigmoid: chosen with a correction bias, as DeepSeek-V3 does
    scale: float = 1.0  # of the weights
    groups: int = 1  # experts are chosen from the best `active_groups` of so many equal groups
    active_groups: int = 1
    shared_width: int = 0  # F of the expert that every token passes through; 0: none
    dense_layers: int = 0  # first layers that have an ordinary MLP

    def __post_init__(self) -> None:
        if self.count % self.groups or not 0 < self.active_groups <= self.groups:
            raise ValueError(f"{self.count} experts cannot be chosen from {self.active_groups} of {self.groups} groups")
        if not 0 < self.active <= self.count // self.groups * self.active_groups:
            raise ValueError(f"{self.active} experts cannot be active of {self.count}")


@dataclasses.dataclass(frozen=True)
class Latent:
    """Latent attention (DeepSeek-V2, V3): keys and values are maps of one short vector, which is all that is cached."""

    rank: int  # size of that vector
    query_rank: int | None  # queries pass through a vector of this size; None: a direct map
    plain_size: int  # numbers of a query and key head without positions
    rotary_size: int  # those with positions; the keys' are shared by all heads
    value_size: int  # numbers of a value head

    @property
    def cached_size(self) -> int:
        """Numbers per token and layer that a later token needs."""
        return self.rank + self.rotary_size


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """Shape of a decoder: RMSNorm, rotary positions, grouped-query or latent attention, gated MLP or experts."""

    layers: int  # L
    width: int  # D
    mlp_width: int  # F, inner width of the gated MLP
    heads: int  # H, query heads
    key_heads: int  # K, key and value heads; divides H
    head_size: int  # d, of a query; D / H in most models, and no rule
    vocabulary: int  # V
    rope_theta: float  # base of the rotary frequencies
    norm_epsilon: float  # added to the mean square in RMSNorm
    context: int  # longest sequence in tokens that the weights were trained on
    tied_embeddings: bool  # logits use the embedding table; otherwise `unembed` is a parameter of its own
    qkv_bias: bool = False  # q, k and v have biases (Qwen2)
    qk_norm: bool = False  # each head of q and k passes an RMSNorm before it is turned (Qwen3)
    rope_scaling: Llama3Scaling | YarnScaling | None = None
    experts: Experts | None = None
    latent: Latent | None = None

    def __post_init__(self) -> None:
        if self.heads % self.key_heads:
            raise ValueError(f"heads ({self.heads}) must be a multiple of key_heads ({self.key_heads})")
        if self.rotary_size % 2:
            raise ValueError(f"head_size ({self.head_size}) must be even: rotary positions turn pairs of numbers")
        if self.latent is not None and self.head_size != self.latent.plain_size + self.latent.rotary_size:
            raise ValueError(f"head_size ({self.head_size}) must be plain_size + rotary_size of {self.latent}")
        if self.latent is not None and (self.qkv_bias or self.qk_norm or self.key_heads != self.heads):
            raise ValueError("latent attention has no biases, no norms of q and k, and a key head per query head")
        if self.experts is not None and not 0 <= self.experts.dense_layers < self.layers:
            raise ValueError(f"dense_layers ({self.experts.dense_layers}) must leave some of {self.layers} layers")

    @property
    def group(self) -> int:
        """Query heads that share one key head, H / K."""
        return self.heads // self.key_heads

    @property
    def rotary_size(self) -> int:
        """Numbers of a head that carry positions."""
        return self.head_size if self.latent is None else self.latent.rotary_size

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        """Heads, and numbers per head of keys and of values, in a cache: latent attention has one head."""
        if self.latent is None:
            return self.key_heads, self.head_size, self.head_size
        return 1, self.latent.cached_size, self.latent.rank
