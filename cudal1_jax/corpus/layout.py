"""Lines of an array: the elements along the reduced dimension(s), how they are addressed, and how extents are named."""

import dataclasses
import math
from collections.abc import Sequence
from random import Random

DIMENSIONS = {  # names of the extents in `forward`, by rank
    1: (("n",), ("size",), ("length",)),
    2: (("rows", "columns"), ("n", "m"), ("rows", "cols"), ("height", "width")),
    3: (("b", "n", "m"), ("batch", "rows", "columns"), ("batch", "n", "m"), ("d0", "d1", "d2")),
    4: (("n", "c", "h", "w"), ("batch", "channels", "height", "width"), ("b", "c", "h", "w")),
}


# The longest line that one float32 accumulator may add up: one huge value swallows the last bits of what follows, and
# equal values are rounded the same way again and again.
LONGEST_SUM = 512
LONGEST_MEAN = 256  # shorter where the mean is taken off values that may be many deviations away from zero


@dataclasses.dataclass(frozen=True)
class Lines:
    """An array seen as lines along `dims`, which are adjacent: outer x length x inner elements."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        return self.dims[-1] == len(self.shape) - 1

    @property
    def length(self) -> int:
        return math.prod(self.shape[dim] for dim in self.dims)

    @property
    def inner(self) -> int:
        return math.prod(self.shape[self.dims[-1] + 1 :])

    @property
    def outer(self) -> int:
        return math.prod(self.shape[: self.dims[0]])

    @property
    def suit_warps(self) -> bool:
        """Whether a warp per line has work for its lanes."""
        return self.length >= 32

    def blocks(self, counts: Sequence[int]) -> tuple[int, ...]:
        """Those numbers of threads for which a block per line has work: barriers of idle threads cost time too."""
        return tuple(count for count in counts if count <= self.length)

    @property
    def where(self) -> str:
        """Canonical place of the reduced dimensions: rank and dims."""
        return f"{len(self.shape)}d{''.join(map(str, self.dims))}"

    def reduced(self, keepdim: bool) -> tuple[int, ...]:
        if keepdim:
            return tuple(1 if dim in self.dims else extent for dim, extent in enumerate(self.shape))
        return tuple(extent for dim, extent in enumerate(self.shape) if dim not in self.dims)


@dataclasses.dataclass(frozen=True)
class Extents:
    """Python text about an array's extents inside `forward`."""

    statement: str  # unpacks the shape
    names: tuple[str, ...]
    lines: str  # number of lines
    outer: str
    length: str
    inner: str
    size: str
    dims: tuple[int, ...]

    def reduced(self, keepdim: bool) -> str:
        """Shape of the array with the lines reduced to one element each."""
        if keepdim:
            kept = ["1" if dim in self.dims else name for dim, name in enumerate(self.names)]
        else:
            kept = [name for dim, name in enumerate(self.names) if dim not in self.dims]
        return f"({kept[0]},)" if len(kept) == 1 else f"({', '.join(kept)})"


def extents(rng: Random, lines: Lines, array: str, taken: Sequence[str]) -> Extents:
    """Names for the extents of `array`, none of them in `taken`."""
    used = {*taken, array}
    choices = [names for names in DIMENSIONS[len(lines.shape)] if not used & set(names)]
    names = rng.choice(choices) if choices else tuple(f"dim{i}" for i in range(len(lines.shape)))
    first, last = lines.dims[0], lines.dims[-1]
    left = ", ".join(names) + ("," if len(names) == 1 else "")
    return Extents(
        statement=f"{left} = {array}.shape",
        names=names,
        lines=product(names[:first] + names[last + 1 :]),
        outer=product(names[:first]),
        length=product(names[first : last + 1]),
        inner=product(names[last + 1 :]),
        size=product(names),
        dims=lines.dims,
    )


def product(names: Sequence[str]) -> str:
    return " * ".join(names) if names else "1"


def draw_rows(rng: Random, elements: tuple[int, int], ranks: Sequence[int] = (2, 2, 2, 3, 4)) -> Lines:
    """Contiguous lines: the last dimension, or several trailing ones."""
    rank = rng.choice(ranks)
    shape = draw_shape(rng, rank, elements)
    trailing = 1 if rank == 2 or rng.random() < 0.5 else rng.randrange(2, rank)
    return Lines(shape, tuple(range(rank - trailing, rank)))


def draw_trailing(rng: Random, elements: tuple[int, int]) -> Lines:
    """Contiguous lines for weights: the last dimension, or two or three trailing ones as often."""
    rank = rng.choice((2, 3, 3, 4, 4, 4, 4))
    shape = draw_shape(rng, rank, elements)
    return Lines(shape, tuple(range(1 if rank == 4 and rng.random() < 0.5 else rng.randrange(1, rank), rank)))


def draw_images(rng: Random, elements: tuple[int, int]) -> Lines:
    """Lines of all dimensions after the channel, which is dimension 1."""
    rank = rng.choice((3, 4, 4))
    return Lines(draw_shape(rng, rank, elements), tuple(range(2, rank)))


def draw_strided(
    rng: Random, elements: tuple[int, int], ranks: Sequence[int] = (2, 3, 3, 4), longest: int = LONGEST_SUM
) -> Lines:
    """Lines whose elements lie apart: dimension 0 of a matrix, 0 or 1 of a larger array; at most `longest` long."""
    rank = rng.choice(ranks)
    dim = 0 if rank == 2 else rng.choice((1, 1, 1, 0))
    while (lines := Lines(draw_shape(rng, rank, elements), (dim,))).length > longest:
        pass
    return lines


def draw_shape(rng: Random, rank: int, elements: tuple[int, int]) -> tuple[int, ...]:
    """A shape with a number of elements in the given range, odd extents included."""
    low, high = elements
    while True:
        shape = tuple(_extent(rng, rank) for _ in range(rank))
        if low <= math.prod(shape) <= high:
            return shape


def _extent(rng: Random, rank: int) -> int:
    largest = {1: 200_000, 2: 16_384, 3: 400, 4: 96}[rank]
    smallest = {1: 2_000, 2: 16, 3: 4, 4: 2}[rank]
    extent = round(math.exp(rng.uniform(math.log(smallest), math.log(largest))))
    if extent >= 16 and rng.random() < 0.5:
        step = 16 if extent < 256 else 64
        extent = max(step, extent // step * step)
    return extent
