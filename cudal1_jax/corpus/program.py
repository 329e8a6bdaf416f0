"""A program of the corpus: its text, put together from kernels and launches, and what can be said of it."""

import dataclasses
from collections.abc import Iterable, Sequence

from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Program:
    """One CuPy-subset file with true sentences about it."""

    text: str
    form: str  # short name of the form, unique within a family
    techniques: tuple[str, ...]
    design: str  # imperative sentence: what the program does
    trait: str  # verb phrase, third person: what to know of its speed


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One `__global__` function: its parameters as CUDA text and its statements, indented by two per level."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[str, ...]

    def lines(self) -> list[str]:
        head = f'extern "C" __global__ void {self.name}({", ".join(self.parameters)}) {{'
        return [head, *indent(self.body), "}"]


@dataclasses.dataclass(frozen=True)
class Launch:
    kernel: str
    grid: str  # Python text of the grid, without the outer parentheses: "(n + 255) // 256," or "m, n"
    block: str  # the same for the block
    arguments: tuple[str, ...]

    def line(self) -> str:
        return f"{self.kernel}(({_tuple(self.grid)}), ({_tuple(self.block)}), ({', '.join(self.arguments)}))"


def render(
    style: Style,
    kernels: Sequence[Kernel],
    arguments: Sequence[str],
    body: Sequence[str],
    helpers: Sequence[str] = (),
) -> str:
    """The file: import, CUDA text, kernel handles, `forward` with the given Python statements."""
    lines = ["import cupy as cp", "", f"{style.source} = r'''", *helpers]
    for kernel in kernels:
        lines += kernel.lines()
    lines.append("'''")
    lines += [f'{kernel.name} = cp.RawKernel({style.source}, "{kernel.name}")' for kernel in kernels]
    lines += ["", f"def forward({', '.join(arguments)}):", *(f"    {line}" for line in body)]
    return "\n".join(lines) + "\n"


def block(head: str, body: Iterable[str]) -> list[str]:
    """A C++ compound statement: `head {`, the body indented, `}`."""
    return [f"{head} {{", *indent(body), "}"]


def indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _tuple(text: str) -> str:
    return text if "," in text else f"{text},"
