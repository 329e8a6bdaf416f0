"""What programs for reductions share: values, accumulators, results, and the text around them."""

import dataclasses
from collections.abc import Sequence
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.fold import Fold
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import reduction_name
from cudal1_jax.corpus.program import Kernel, Launch, render
from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Spec:
    """A reduction of `main` along `lines`: prologue on every element, fold, epilogue on every result."""

    prologue: Chain
    fold: Fold
    epilogue: Chain
    main: str
    lines: Lines
    keepdim: bool
    arguments: tuple[str, ...]
    title: str = ""  # what to call the kernel, where the fold's name says too little


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    extents: Extents
    spec: Spec
    kernel: str

    def value(self, at: str, position: str, name: str = "") -> tuple[list[str], str]:
        """Statements and expression of the value at flat index `at`, position `position` of its line."""
        spec, name = self.spec, name or self.style.value
        texts = {"full": at, "row": position, "scalar": "0"}
        operands = {o.name: f"{o.name}[{texts[o.place]}]" for o in spec.prologue.operands}
        load = f"{spec.main}[{at}]"
        if spec.fold.uses_value_twice:
            return chains.value(spec.prologue, load, operands, name), name
        return chains.statements(spec.prologue, load, operands, name)

    def update(self, accumulator: str, at: str, position: str) -> list[str]:
        """Statements that fold the element at flat index `at` into the accumulator."""
        if len(self.spec.prologue.operands) and "full" in {o.place for o in self.spec.prologue.operands}:
            lines, last = self.value(self.style.index, position)
            head = [f"int {self.style.index} = {at};"]
            return [*head, *lines, self.spec.fold.update(accumulator, last)]
        lines, last = self.value(at, position)
        return [*lines, self.spec.fold.update(accumulator, last)]

    def store(self, accumulator: str, at: str, length: str) -> list[str]:
        """Statements that finish the accumulator and write it."""
        spec = self.spec
        finished = spec.fold.finished(accumulator, length)
        if not spec.epilogue.steps:
            return [f"{self.style.out}[{at}] = {finished};"]
        operands = {operand.name: f"{operand.name}[{at}]" for operand in spec.epilogue.operands}
        lines, last = chains.in_place(spec.epilogue, accumulator, operands)
        head = [] if finished == accumulator else [f"{accumulator} = {finished};"]
        return [*head, *lines, f"{self.style.out}[{at}] = {last};"]

    def program(
        self, body: list[str], integers: dict[str, str], grid: str, threads: str, helpers: Sequence[str] = ()
    ) -> str:
        wording, spec = self.style, self.spec
        pointers = (spec.main, *spec.prologue.pointers, *spec.epilogue.pointers)
        parameters = (
            *wording.pointers(pointers),
            wording.pointer(wording.out, "float*"),
            *(f"int {name}" for name in integers),
        )
        kernel = Kernel(self.kernel, parameters, tuple(body))
        launch = Launch(self.kernel, grid, threads, (*pointers, wording.out, *integers.values()))
        out = f"{wording.out} = cp.empty({self.extents.reduced(spec.keepdim)}, cp.float32)"
        statements = [self.extents.statement, out, launch.line(), f"return {wording.out}"]
        return render(wording, [kernel], spec.arguments, statements, helpers)


def draw_setting(spec: Spec, rng: Random, blocks: tuple[int, ...] = style.BLOCKS) -> Setting:
    wording = style.draw(
        rng, (*spec.arguments, "total", "best", "base", "depth", "inner", "first", "p", "c", "s", "id"), blocks
    )
    extents = layout.extents(rng, spec.lines, spec.main, (*spec.arguments, wording.out))
    name = rng.choice((spec.title, f"{spec.title}_kernel")) if spec.title else None
    return Setting(
        wording, extents, spec, name or reduction_name(rng, spec.prologue, spec.fold.name, spec.lines.contiguous)
    )


def scoped(lines: list[str]) -> list[str]:
    """Statements that declare names of their own get a scope, so that they can be repeated."""
    return lines if len(lines) == 1 else ["{", *(f"  {line}" for line in lines), "}"]
