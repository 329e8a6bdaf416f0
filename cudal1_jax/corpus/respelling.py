"""The same program in other words: identifiers renamed, so that its token stream and its speed stay what they are."""

import re
from collections.abc import Collection
from random import Random

# Names that say the same; those of a group are exchanged for one another. No member's name is among them (`x.size`), no
# function's and no builtin's, so that what counts as a name stays one and the token stream what it was.
SYNONYMS = (
    ("i", "idx", "index"),
    ("v", "value", "val"),
    ("out", "result", "output", "dst"),
    ("n", "count", "length"),
    ("total", "acc", "running"),
    ("row", "line"),
    ("j", "col", "c", "k"),
    ("rows", "num_rows", "height"),
    ("columns", "cols", "num_columns", "width"),
    ("part", "partial", "shared"),
    ("source", "code", "text"),
    ("rest", "tail", "remaining"),
)
HANDLE = re.compile(r'cp\.RawKernel\(\w+, "(\w+)"\)')
WORD = re.compile(r"\w+")
KEYWORD = re.compile(r"[(,]\s*(\w+)=[^=]")  # of a call, as in cp.RawModule(code=source): no name of the program's own


def respelled(text: str, rng: Random, kept: Collection[str] = ()) -> str:
    """`text` with some identifiers renamed throughout, none of `kept` and never to a name that it already has."""
    renamed = text
    for name, other in _chosen(text, rng, kept):
        if other not in WORD.findall(renamed):
            renamed = _renamed(renamed, name, other)
    return renamed


def _chosen(text: str, rng: Random, kept: Collection[str]) -> list[tuple[str, str]]:
    """Names of the text with what they are to be called."""
    words, chosen = set(WORD.findall(text)), []
    fixed = {*kept, *KEYWORD.findall(text)}
    for group in SYNONYMS:
        found = [name for name in group if name in words and name not in fixed]
        free = [name for name in group if name not in words]
        if found and free and rng.random() < 0.6:
            chosen.append((rng.choice(found), rng.choice(free)))
    handles = [name for name in dict.fromkeys(HANDLE.findall(text)) if rng.random() < 0.5]
    return [*chosen, *((name, _other_handle(name)) for name in handles)]


def _other_handle(name: str) -> str:
    return f"compute_{name.removesuffix('_kernel')}" if name.endswith("_kernel") else f"{name}_kernel"


def _renamed(text: str, name: str, other: str) -> str:
    """Every occurrence as a whole word, members (`x.size`) apart."""
    return re.sub(rf"(?<![\w.]){re.escape(name)}\b", other, text)
