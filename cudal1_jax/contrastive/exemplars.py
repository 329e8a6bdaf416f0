"""Which earlier programs a prompt shows: the selection policies of the contrastive stage, as pure functions."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cudal1_jax.contrastive.records import Judged
from cudal1_jax.contrastive.reward import speedup
from evaluator.records import Interval


@dataclasses.dataclass(frozen=True)
class Exemplar:
    """A stored program that is right, with its measured speed-up."""

    program: str  # text of the file, LF line ends
    speedup: Interval  # reference time over program time; paired, 99 % interval
    sha256: str = ""  # identity of the text; "" where a caller has no store


Select = Callable[[Sequence[Exemplar], int, np.random.Generator], list[Exemplar]]
"""(correct programs of one task, how many to show, generator) -> exemplars; fewer where the store holds fewer."""


def pool(judged: Iterable[Judged], task: str) -> list[Exemplar]:
    """The distinct programs of a task that are right and were measured, in the order in which the run met them.

    A program that was measured several times has the interval of its median measurement (the lower one of two), so
    that a lucky figure does not make it an example.
    """
    measured: dict[str, list[Interval]] = {}
    texts: dict[str, str] = {}
    for entry in judged:
        interval = speedup(entry.verdict) if entry.task == task and entry.verdict.ok else None
        if interval is not None:
            measured.setdefault(entry.verdict.program_sha256, []).append(interval)
            texts[entry.verdict.program_sha256] = entry.program
    return [
        Exemplar(program=texts[sha256], speedup=_lower_median(intervals), sha256=sha256)
        for sha256, intervals in measured.items()
    ]


def build(policy: str, *, bucket_width: float, temperature: float, islands: int) -> Select:
    """The selection function that a config names: bucket, island, random, best or none. ValueError: another name."""
    if policy == "bucket":
        return lambda programs, count, rng: bucket(
            programs, count, rng, bucket_width=bucket_width, temperature=temperature
        )
    if policy == "island":
        return lambda programs, count, rng: island(programs, count, rng, islands=islands, temperature=temperature)
    if policy == "random":
        return random
    if policy == "best":
        return best
    if policy == "none":
        return none
    raise ValueError(f"exemplar policy {policy!r} does not exist: choose bucket, island, random, best or none")


def bucket(
    programs: Sequence[Exemplar], count: int, rng: np.random.Generator, *, bucket_width: float, temperature: float
) -> list[Exemplar]:
    """One uniform draw from each of `count` distinct performance buckets [k ds, (k + 1) ds) (CUDA-L1, section 3.3).

    P(B_i) ~ exp((mean_i - mu) / tau), mu the mean over the bucket means; buckets are drawn without replacement.
    """
    buckets: dict[int, list[Exemplar]] = {}
    for exemplar in programs:
        buckets.setdefault(math.floor(exemplar.speedup.value / bucket_width), []).append(exemplar)
    members = [buckets[k] for k in sorted(buckets)]
    if not members:
        return []
    means = [float(np.mean([exemplar.speedup.value for exemplar in group])) for group in members]
    chosen = _draw(means, count, rng, temperature)
    return [group[rng.integers(len(group))] for group in (members[i] for i in chosen)]


def island(
    programs: Sequence[Exemplar], count: int, rng: np.random.Generator, *, islands: int, temperature: float
) -> list[Exemplar]:
    """Draws by speed-up from one island: programs are spread over islands by their hash, so each evolves apart.

    With fewer distinct programs on the chosen island than `count`, the prompt shows fewer.
    """
    homes: dict[int, list[Exemplar]] = {}
    for exemplar in programs:
        homes.setdefault(int(exemplar.sha256[:8], 16) % islands, []).append(exemplar)
    if not homes:
        return []
    residents = homes[sorted(homes)[rng.integers(len(homes))]]
    chosen = _draw([exemplar.speedup.value for exemplar in residents], count, rng, temperature)
    return [residents[i] for i in chosen]


def random(programs: Sequence[Exemplar], count: int, rng: np.random.Generator) -> list[Exemplar]:
    """`count` distinct programs, each as likely as any other."""
    if not programs:
        return []
    return [programs[i] for i in rng.choice(len(programs), size=min(count, len(programs)), replace=False)]


def best(programs: Sequence[Exemplar], count: int, rng: np.random.Generator) -> list[Exemplar]:
    """The `count` fastest programs; nothing is drawn."""
    return sorted(programs, key=lambda exemplar: -exemplar.speedup.value)[:count]


def none(programs: Sequence[Exemplar], count: int, rng: np.random.Generator) -> list[Exemplar]:
    """No exemplar: plain GRPO and vanilla sampling."""
    return []


def _lower_median(intervals: Sequence[Interval]) -> Interval:
    return sorted(intervals, key=lambda interval: interval.value)[(len(intervals) - 1) // 2]


def _draw(values: Sequence[float], count: int, rng: np.random.Generator, temperature: float) -> list[int]:
    """Places of up to `count` distinct values, one after another by P ~ exp((v - mean v) / tau) over those left.

    Adding Gumbel noise to the exponents and taking the largest is that draw, and nothing in it can overflow or vanish.
    """
    exponents = (np.asarray(values) - np.mean(values)) / temperature
    return [int(place) for place in np.argsort(-(exponents + rng.gumbel(size=len(values))))[:count]]
