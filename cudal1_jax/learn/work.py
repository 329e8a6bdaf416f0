"""How much arithmetic an update is: the numerator of a model's utilisation."""

import math
from collections.abc import Sequence

from cudal1_jax.policy import parameters
from cudal1_jax.policy.config import DecoderConfig


def update_flops(
    config: DecoderConfig, prompts: Sequence[int], completions: Sequence[Sequence[int]], *, full: bool
) -> float:
    """Floating-point operations of one update on prompts [N] and their completions, lengths in tokens.

    Counted is what the model asks for, and not what is computed again or padded: products by weights (the vocabulary's
    for completions only), scores and mixing of causal attention. The backward pass costs as much again, and once more
    where all weights have a gradient (`full`); an adapter's own products are left out.
    """
    matrices = [leaf.shape for leaf in parameters.abstract(config).values() if len(leaf.shape) == 3]  # [L, in, out]
    by_weights = 2 * sum(map(math.prod, matrices))
    by_vocabulary = 2 * config.vocabulary * config.width
    by_pair = 4 * config.layers * config.heads * config.head_size  # a query with a key, and its value
    forward = 0.0
    for prompt, group in zip(prompts, completions, strict=True):
        forward += by_weights * prompt + by_pair * prompt * (prompt + 1) / 2
        for length in group:
            pairs = length * prompt + length * (length + 1) / 2
            forward += (by_weights + by_vocabulary) * length + by_pair * pairs
    return forward * (3 if full else 2)
