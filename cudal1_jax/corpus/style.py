"""Free choices of wording in a program: names, block size, how indices and grids are spelt."""

import dataclasses
from collections.abc import Iterable
from random import Random

BLOCKS = (64, 128, 128, 256, 256, 256, 512)


@dataclasses.dataclass(frozen=True)
class Style:
    """The wording of one program. Every name differs from the task's arguments."""

    out: str  # output array
    count: str  # number of elements or outputs
    index: str  # flat index of the element
    row: str
    column: str  # loop or thread variable over columns
    rows: str  # extents
    columns: str
    value: str  # running value
    source: str  # Python variable that holds the CUDA text
    block: int  # threads per block
    block_text: bool  # index with the literal block size instead of blockDim.x
    restrict: bool  # pointers carry __restrict__
    wide: bool  # where lines begin is computed in size_t

    @property
    def thread(self) -> str:
        """Expression of the global thread index along x."""
        width = str(self.block) if self.block_text else "blockDim.x"
        return f"blockIdx.x * {width} + threadIdx.x"

    @property
    def width(self) -> str:
        """Expression of the threads in a block."""
        return str(self.block) if self.block_text else "blockDim.x"

    def pointer(self, name: str, kind: str = "const float*") -> str:
        return f"{kind} __restrict__ {name}" if self.restrict else f"{kind} {name}"

    def pointers(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.pointer(name) for name in names)

    def grid(self, count: str, per_block: int | None = None) -> str:
        """Python expression of the blocks that cover `count` items."""
        per_block = per_block or self.block
        return f"({count} + {per_block - 1}) // {per_block}"


def draw(rng: Random, taken: Iterable[str], blocks: tuple[int, ...] = BLOCKS) -> Style:
    """A style whose names avoid those in `taken`."""
    used = set(taken)

    def name(*choices: str) -> str:
        free = [choice for choice in choices if choice not in used] or [f"{choices[0]}_{len(used)}"]
        used.add(picked := rng.choice(free))
        return picked

    rows, columns = rng.choice([("rows", "columns"), ("n", "m"), ("rows", "cols"), ("height", "width")])
    return Style(
        out=name("out", "out", "out", "result", "output", "dst"),
        rows=name(rows, "num_rows"),
        columns=name(columns, "num_columns"),
        count=name("n", "count", "size", "total"),
        index=name("i", "i", "idx", "index"),
        row=name("row", "row", "r"),
        column=name("j", "col", "c", "k"),
        value=name("v", "v", "value", "t"),
        source=rng.choice(["source", "source", "code", "cuda"]),
        block=rng.choice(blocks),
        block_text=rng.random() < 0.3,
        restrict=rng.random() < 0.15,
        wide=rng.random() < 0.25,
    )
