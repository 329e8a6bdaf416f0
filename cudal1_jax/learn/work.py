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
    shapes = [leaf.shape for leaf in parameters.abstract(config).values()]
    dense = sum(math.prod(shape) for shape in shapes if len(shape) == 3)  # [L, in, out]
    routed = sum(math.prod(shape) for shape in shapes if len(shape) == 4)  # [L, E, in, out]
    active = routed * config.experts.active // config.experts.count if config.experts else 0
    by_weights = 2 * (dense + active)
    by_vocabulary = 2 * config.vocabulary * config.width
    value_size = config.latent.value_size if config.latent else config.head_size
    by_pair = 2 * config.layers * config.heads * (config.head_size + value_size)  # a query with a key, and its value
    forward = 0.0
    for prompt, group in zip(prompts, completions, strict=True):
        forward += by_weights * prompt + by_pair * prompt * (prompt + 1) / 2
        for length in group:
            pairs = length * prompt + length * (length + 1) / 2
            forward += (by_weights + by_vocabulary) * length + by_pair * pairs
    return forward * (3 if full else 2)
