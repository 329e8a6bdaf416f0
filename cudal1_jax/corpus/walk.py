"""Ways for threads to walk the lines of an array: who takes a line, and how its elements are addressed."""

import dataclasses

from cudal1_jax.corpus.layout import Extents
from cudal1_jax.corpus.program import block
from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Walk:
    """Texts that a kernel over lines is made of."""

    intro: tuple[str, ...]  # statements that find the line and leave where there is none
    first: str  # position at which this thread starts in its line
    stride: str  # distance between its positions; "1" = it takes the line alone
    at: str  # flat index of the element at position `position`
    position: str  # loop variable
    length: str  # kernel parameter: elements of a line
    line: str  # number of the line
    integers: tuple[tuple[str, str], ...]  # kernel's integer parameters, each with its Python expression
    grid: str
    threads: str

    def loop(self, body: list[str]) -> list[str]:
        """A loop of this thread over its part of the line."""
        step = f"++{self.position}" if self.stride == "1" else f"{self.position} += {self.stride}"
        head = f"for (int {self.position} = {self.first}; {self.position} < {self.length}; {step})"
        return [f"{head} {body[0]}"] if len(body) == 1 else block(head, body)

    def backwards(self, body: list[str]) -> list[str]:
        """The loop of a thread that takes the line alone, from its end."""
        return block(f"for (int {self.position} = {self.length} - 1; {self.position} >= 0; --{self.position})", body)


def thread_per_row(style: Style, extents: Extents) -> Walk:
    row, j = style.row, style.column
    return Walk(
        intro=(f"int {row} = {style.thread};", f"if ({row} >= {style.rows}) return;"),
        first="0",
        stride="1",
        at=f"{row} * {style.columns} + {j}",
        position=j,
        length=style.columns,
        line=row,
        integers=((style.rows, extents.lines), (style.columns, extents.length)),
        grid=style.grid(extents.lines),
        threads=str(style.block),
    )


def block_per_row(style: Style, extents: Extents) -> Walk:
    row, j = style.row, style.column
    return Walk(
        intro=(f"int {row} = blockIdx.x;",),
        first="threadIdx.x",
        stride=style.width,
        at=f"{row} * {style.columns} + {j}",
        position=j,
        length=style.columns,
        line=row,
        integers=((style.columns, extents.length),),
        grid=extents.lines,
        threads=str(style.block),
    )


def warp_per_row(style: Style, extents: Extents) -> Walk:
    return dataclasses.replace(block_per_row(style, extents), stride="32", threads="32")


def thread_per_line(style: Style, extents: Extents) -> Walk:
    """Lines whose elements are `inner` apart; neighbouring threads take neighbouring lines."""
    k, line = style.column, style.index
    leading = extents.dims[0] == 0
    base = () if leading else (f"int base = {line} / inner * depth * inner + {line} % inner;",)
    return Walk(
        intro=(f"int {line} = {style.thread};", f"if ({line} >= {style.count}) return;", *base),
        first="0",
        stride="1",
        at=f"{k} * {style.count} + {line}" if leading else f"base + {k} * inner",
        position=k,
        length="depth",
        line=line,
        integers=(
            ("depth", extents.length),
            *(() if leading else (("inner", extents.inner),)),
            (style.count, extents.lines),
        ),
        grid=style.grid(extents.lines),
        threads=str(style.block),
    )


def thread_per_line_2d(style: Style, extents: Extents) -> Walk:
    """As `thread_per_line`, the outer part of the index in blockIdx.y, so that no division is needed."""
    k, c = style.column, style.index
    return Walk(
        intro=(
            f"int {c} = {style.thread};",
            f"if ({c} >= inner) return;",
            f"size_t base = (size_t)blockIdx.y * depth * inner + {c};"
            if style.wide
            else f"int base = blockIdx.y * depth * inner + {c};",
        ),
        first="0",
        stride="1",
        at=f"base + {k} * inner",
        position=k,
        length="depth",
        line=f"blockIdx.y * inner + {c}",
        integers=(("depth", extents.length), ("inner", extents.inner)),
        grid=f"{style.grid(extents.inner)}, {extents.outer}",
        threads=str(style.block),
    )
