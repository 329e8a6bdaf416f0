"""What a corpus holds: counts by family, form and technique, and lengths in tokens."""

import collections
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from cudal1_jax.corpus.example import Example


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Tokens of the texts of one kind of example."""

    examples: int
    prompt_mean: float
    prompt_most: int
    completion_mean: float
    completion_most: int


def counts(examples: Iterable[Example]) -> dict[str, Any]:
    """Numbers of examples by kind, family, family and form, technique; distinct programs and step lists."""
    everything = list(examples)
    forms = collections.Counter(f"{each.family}/{each.form}" for each in everything)
    techniques = collections.Counter(technique for each in everything for technique in each.techniques)
    return {
        "examples": len(everything),
        "by_kind": dict(sorted(collections.Counter(each.kind for each in everything).items())),
        "by_family": dict(sorted(collections.Counter(each.family for each in everything).items())),
        "by_form": dict(sorted(forms.items())),
        "by_technique": dict(techniques.most_common()),
        "distinct_programs": len({each.stream for each in everything}),
        "distinct_step_lists": len({each.key for each in everything}),
    }


def lengths(
    examples: Iterable[Example], prompt_tokens: Callable[[str], int], tokens: Callable[[str], int]
) -> dict[str, Lengths]:
    """Lengths by kind. `prompt_tokens` counts a user message with its chat template, `tokens` plain text."""
    sizes: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
    for each in examples:
        sizes[each.kind].append((prompt_tokens(each.prompt), tokens(each.completion)))
    return {
        kind: Lengths(
            examples=len(pairs),
            prompt_mean=sum(prompt for prompt, _ in pairs) / len(pairs),
            prompt_most=max(prompt for prompt, _ in pairs),
            completion_mean=sum(completion for _, completion in pairs) / len(pairs),
            completion_most=max(completion for _, completion in pairs),
        )
        for kind, pairs in sorted(sizes.items())
    }
