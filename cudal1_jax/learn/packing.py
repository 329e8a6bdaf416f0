"""Training examples as token ids, and Grain's packing of them into rows of one length."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import grain
import jax.numpy as jnp
import numpy as np
from grain.experimental import BestFitPackIterDataset

from cudal1_jax.learn.batch import PackedRows

BINS = 64  # rows that are filled at a time: 96 % fill with examples of 200 to 700 tokens in rows of 2,048
EXPECTED_FILL = 0.94  # for the length of a schedule; a little low, so that a run ends where its schedule does or before

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Tokens:
    """One example: what the model reads and what it should say."""

    prompt: tuple[int, ...]  # chat template around the user message, up to where the assistant begins
    completion: tuple[int, ...]  # the assistant's words and the end-of-turn token; only these are learnt

    def __len__(self) -> int:
        """Positions it takes in a row: the last token is only ever a target."""
        return len(self.prompt) + len(self.completion) - 1


def fits(example: Tokens, row_tokens: int) -> bool:
    """Whether an example has both halves and goes into a row whole: none is ever cut."""
    return bool(example.prompt) and bool(example.completion) and len(example) <= row_tokens


def features(example: Tokens) -> Batch:
    """Inputs, targets one position later, and which targets count."""
    ids = np.array(example.prompt + example.completion, np.int32)
    mask = np.arange(1, len(ids)) >= len(example.prompt)
    return {"tokens": ids[:-1], "targets": ids[1:], "mask": mask.astype(np.float32)}


def packed(
    examples: Sequence[Tokens], *, row_tokens: int, rows: int, passes: int, seed: int, drop_remainder: bool = True
) -> grain.DatasetIterator:
    """Iterator over dicts of `rows` packed rows, examples in a new order each pass. ValueError: nothing to pack.

    Its `get_state()` is a small JSON object, and `set_state` continues exactly there. Rows at the very end that fill no
    batch are dropped, or come as a smaller one where `drop_remainder` is off.
    """
    if not examples or not all(fits(example, row_tokens) for example in examples):
        raise ValueError(f"there must be examples, each with both halves and in a row of {row_tokens} tokens")
    source = grain.MapDataset.source([features(example) for example in examples])
    stream = source.shuffle(seed=seed).repeat(passes).to_iter_dataset()
    lengths = dict.fromkeys(("tokens", "targets", "mask"), row_tokens)
    rows_of = BestFitPackIterDataset(stream, length_struct=lengths, num_packing_bins=BINS, seed=seed)
    return iter(rows_of.batch(rows, drop_remainder=drop_remainder))


def take(batches: Iterator[Batch], count: int) -> Iterator[Batch]:
    """At most `count` further batches; unlike `zip` with a range it draws none that it does not give."""
    return itertools.islice(batches, count)


def expected_batches(examples: Sequence[Tokens], *, row_tokens: int, rows: int, passes: int) -> int:
    """About as many batches as `packed` gives, never fewer than one; for a schedule and a progress bar."""
    return max(1, math.ceil(passes * sum(map(len, examples)) / (EXPECTED_FILL * row_tokens * rows)))


def to_rows(batch: Batch, *, rows: int, micro_batches: int) -> PackedRows:
    """A batch as `step.make_update` wants it, [1, M, rows / M, T]; fewer rows than `rows` get padding rows."""
    if rows % micro_batches:
        raise ValueError(f"{rows} rows cannot be split into {micro_batches} micro-batches of one size")

    def shaped(x: np.ndarray) -> jnp.ndarray:
        full = np.pad(x, [(0, rows - len(x)), (0, 0)])
        return jnp.asarray(full.reshape(1, micro_batches, rows // micro_batches, x.shape[1]))

    chosen = ("tokens", "targets", "mask", "tokens_positions", "tokens_segment_ids")
    return PackedRows(*(shaped(batch[name]) for name in chosen))


def every_row(examples: Sequence[Tokens], *, row_tokens: int, rows: int) -> Iterator[PackedRows]:
    """Every example once, in batches [rows, T], for an evaluation."""
    for batch in packed(examples, row_tokens=row_tokens, rows=rows, passes=1, seed=0, drop_remainder=False):
        full = to_rows(batch, rows=rows, micro_batches=1)
        yield PackedRows(*(getattr(full, field.name)[0, 0] for field in dataclasses.fields(full)))
