"""Whether the policy wrote something new: a program is a copy when its token stream was seen before it."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from cudal1_jax.contrastive.records import SEED_STEP, Judged
from evaluator.program.identity import token_stream


@functools.cache
def corpus_streams(folder: Path) -> frozenset[str]:
    """Token streams (comments out, identifiers renumbered) of every program under `kernels/`."""
    return frozenset(token_stream(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/*.py")))


def streams(judged: Iterable[Judged]) -> set[str]:
    """Token streams of the programs of some entries."""
    return {token_stream(entry.program) for entry in judged if entry.program}


def novel(judged: Sequence[Judged], known: Iterable[str]) -> list[bool]:
    """For each entry, in (step, sample) order: is its stream in neither `known` nor any entry before it?

    A prompt's exemplars are entries of the store, so they count as seen. Completions without a program are not novel.
    """
    seen = set(known)
    flags = []
    for entry in judged:
        stream = token_stream(entry.program) if entry.program else None
        flags.append(stream is not None and entry.step != SEED_STEP and stream not in seen)
        if stream is not None:
            seen.add(stream)
    return flags
