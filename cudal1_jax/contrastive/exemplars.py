"""Which earlier programs a prompt shows: the selection policies of the contrastive stage, as pure functions."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from evaluator.records import Interval


@dataclasses.dataclass(frozen=True)
class Exemplar:
    """A stored program that is right, with its measured speed-up."""

    program: str  # text of the file, LF line ends
    speedup: Interval  # reference time over program time; paired, 99 % interval
    sha256: str = ""  # identity of the text; "" where a caller has no store


Select = Callable[[Sequence[Exemplar], int, np.random.Generator], list[Exemplar]]
"""(correct programs of one task, how many to show, generator) -> exemplars; fewer where the store holds fewer."""


def build(policy: str, *, bucket_width: float, temperature: float, islands: int) -> Select:
    """The selection function that a config names: bucket, island, random, best or none. ValueError: another name."""
    if policy == "bucket":
        return lambda pool, count, rng: bucket(pool, count, rng, bucket_width=bucket_width, temperature=temperature)
    if policy == "island":
        return lambda pool, count, rng: island(pool, count, rng, islands=islands, temperature=temperature)
    if policy == "random":
        return random
    if policy == "best":
        return best
    if policy == "none":
        return none
    raise ValueError(f"exemplar policy {policy!r} does not exist: choose bucket, island, random, best or none")


def bucket(
    pool: Sequence[Exemplar], count: int, rng: np.random.Generator, *, bucket_width: float, temperature: float
) -> list[Exemplar]:
    """One uniform draw from each of `count` distinct performance buckets [k ds, (k + 1) ds) (CUDA-L1, section 3.3).

    P(B_i) ~ exp((mean_i - mu) / tau), mu the mean over the bucket means; buckets are drawn without replacement.
    """
    buckets: dict[int, list[Exemplar]] = {}
    for exemplar in pool:
        buckets.setdefault(math.floor(exemplar.speedup.value / bucket_width), []).append(exemplar)
    members = [buckets[k] for k in sorted(buckets)]
    if not members:
        return []
    means = np.array([np.mean([exemplar.speedup.value for exemplar in group]) for group in members])
    chosen = rng.choice(
        len(members), size=min(count, len(members)), replace=False, p=centred_softmax(means, temperature)
    )
    return [group[rng.integers(len(group))] for group in (members[i] for i in chosen)]


def island(
    pool: Sequence[Exemplar], count: int, rng: np.random.Generator, *, islands: int, temperature: float
) -> list[Exemplar]:
    """Draws by speed-up from one island: programs are spread over islands by their hash, so each evolves apart.

    With fewer distinct programs on the chosen island than `count`, the prompt shows fewer.
    """
    homes: dict[int, list[Exemplar]] = {}
    for exemplar in pool:
        homes.setdefault(int(exemplar.sha256[:8], 16) % islands, []).append(exemplar)
    if not homes:
        return []
    residents = homes[sorted(homes)[rng.integers(len(homes))]]
    speedups = np.array([exemplar.speedup.value for exemplar in residents])
    chosen = rng.choice(
        len(residents), size=min(count, len(residents)), replace=False, p=centred_softmax(speedups, temperature)
    )
    return [residents[i] for i in chosen]


def random(pool: Sequence[Exemplar], count: int, rng: np.random.Generator) -> list[Exemplar]:
    """`count` distinct programs, each as likely as any other."""
    return [pool[i] for i in rng.choice(len(pool), size=min(count, len(pool)), replace=False)] if pool else []


def best(pool: Sequence[Exemplar], count: int, rng: np.random.Generator) -> list[Exemplar]:
    """The `count` fastest programs; nothing is drawn."""
    return sorted(pool, key=lambda exemplar: -exemplar.speedup.value)[:count]


def none(pool: Sequence[Exemplar], count: int, rng: np.random.Generator) -> list[Exemplar]:
    """No exemplar: plain GRPO and vanilla sampling."""
    return []


def centred_softmax(values: np.ndarray, temperature: float) -> np.ndarray:
    """exp((v_i - mean v) / tau), normalised; the largest exponent is taken out first, so that nothing overflows."""
    logits = (values - values.mean()) / temperature
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()
