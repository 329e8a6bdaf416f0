"""How completions are drawn."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
    """Each set of options compiles its own program.

    The first four are applied in this order, each to what those before it have left: top_p is a share of the
    probability that top_k keeps, min_p one of the likeliest token's. Tokens that tie with the last one kept are kept.
    """

    temperature: float = 1.0  # logits are divided by it; 0 takes the likeliest token
    top_k: int | None = None  # keeps the k likeliest tokens; None: no limit
    top_p: float = 1.0  # keeps the fewest likeliest tokens with this probability; 1: no limit
    min_p: float = 0.0  # keeps tokens at least this share as likely as the likeliest; 0: no limit
    max_new_tokens: int = 512
    stop_ids: tuple[int, ...] = ()  # a completion ends with the first of these, which is part of it
    prompt_bucket: int = 128  # prompts are padded to multiples of it, so that few programs are compiled
    slots: int = 32  # rows decoded together; the others wait for one of them to end
    int8: bool = False  # the layers' matrices in eight bits while decoding

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, or None for no limit, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be between 0 and 1, not {self.min_p}")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1, not {self.max_new_tokens}")
        if self.prompt_bucket < 1:
            raise ValueError(f"prompt_bucket must be at least 1, not {self.prompt_bucket}")
        if self.slots < 1:
            raise ValueError(f"slots must be at least 1, not {self.slots}")
