"""The examples of stage 1: a corpus as token ids, with whole chains of steps kept out for the held-out loss."""

import hashlib
from pathlib import Path

from cudal1_jax.corpus import folder
from cudal1_jax.learn import packing
from cudal1_jax.learn.packing import Tokens
from cudal1_jax.policy.tokenizer import Tokenizer
from cudal1_jax.report import progress
from cudal1_jax.report.run_directory import RunError


def load(
    corpus: str, tokenizer: Tokenizer, *, row_tokens: int, held_out_share: float
) -> tuple[list[Tokens], list[Tokens]]:
    """(training, held-out) examples of at most `row_tokens`; a chain of steps is in one of the two only.

    RunError: no corpus in that folder, or one that leaves either half empty.
    """
    try:
        found = list(folder.read_examples(Path(corpus)))
    except (folder.CorpusError, OSError) as error:
        raise RunError(f"config.data.corpus: {error}") from error
    halves: tuple[list[Tokens], list[Tokens]] = ([], [])
    for example in progress.track(found, "tokens", len(found), "example"):
        completion = (*tokenizer.encode(example.completion), tokenizer.eos_id)
        tokens = Tokens(tuple(tokenizer.render_chat(example.prompt)), completion)
        if packing.fits(tokens, row_tokens):
            halves[is_held_out(example.key, held_out_share)].append(tokens)
    if not all(halves):
        raise RunError(
            f"{corpus} gives {len(halves[0])} training and {len(halves[1])} held-out examples of at most {row_tokens} "
            f"tokens, and both are needed: make a corpus with `python -m cudal1_jax.corpus --out={corpus} --measure`, "
            "or raise config.data.held_out_share"
        )
    return halves


def is_held_out(chain: str, share: float) -> bool:
    """Whether the examples of a chain of steps are kept for the held-out loss; the same in every run."""
    return int.from_bytes(hashlib.sha256(chain.encode()).digest()[:4], "big") < share * 2**32
