"""What a decoder's shape is: one frozen record, read from the weight file and never assumed."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """Shape of a Llama-style decoder: RMSNorm, rotary positions, grouped-query attention, gated MLP."""

    layers: int  # L
    width: int  # D
    mlp_width: int  # F, inner width of the gated MLP
    heads: int  # H, query heads
    key_heads: int  # K, key and value heads; divides H
    head_size: int  # d
    vocabulary: int  # V
    rope_theta: float  # base of the rotary frequencies
    norm_epsilon: float  # added to the mean square in RMSNorm
    context: int  # longest sequence in tokens that the weights were trained on
    tied_embeddings: bool  # logits use the embedding table; otherwise `unembed` is a parameter of its own

    def __post_init__(self) -> None:
        if self.heads % self.key_heads:
            raise ValueError(f"heads ({self.heads}) must be a multiple of key_heads ({self.key_heads})")
        if self.head_size % 2:
            raise ValueError(f"head_size ({self.head_size}) must be even: rotary positions turn pairs of numbers")

    @property
    def group(self) -> int:
        """Query heads that share one key head, H / K."""
        return self.heads // self.key_heads
