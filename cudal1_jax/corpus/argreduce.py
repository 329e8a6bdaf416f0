"""Argmax and argmin along one dimension, with steps before them that never round."""

import dataclasses
from collections.abc import Callable
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style, walk, workload
from cudal1_jax.corpus.chain import Chain, Formula
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import pick_main, reduction_name
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.reduction import dim_text
from cudal1_jax.corpus.style import Style
from cudal1_jax.corpus.walk import Walk
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "reduction"


@dataclasses.dataclass(frozen=True)
class Spec:
    """The place of the largest or smallest element of every line; the first of equals."""

    prologue: Chain
    largest: bool
    main: str
    lines: Lines
    keepdim: bool
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return "argmax" if self.largest else "argmin"

    @property
    def start(self) -> str:
        return "-3e38f" if self.largest else "3e38f"

    @property
    def better(self) -> str:
        return ">" if self.largest else "<"


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    if rng.random() < 0.4:
        lines = layout.draw_rows(rng, elements)
        lines = Lines(lines.shape, lines.dims[-1:])
    else:
        lines = layout.draw_strided(rng, elements)
    main, before = pick_main(rng), rng.choice((0, 0, 0, 1, 1, 2))
    operands, arrays = draw_operands(rng, lines.shape, int(before > 0 and rng.random() < 0.3), main, ("full",))
    prologue = chains.draw(rng, before, operands, exact=True)
    arrays = (Array(main, lines.shape, init=rng.choice(("uniform(0,1)", "normal(0,1)"))), *arrays)
    spec = Spec(prologue, rng.random() < 0.55, main, lines, rng.random() < 0.25, tuple(array.name for array in arrays))
    formula = Formula.drawn(rng, main, spec.arguments)
    formula.steps(prologue)
    keepdim = ", keepdim=True" if spec.keepdim else ""
    formula.apply(f"nn.{spec.name}({{v}}, {dim_text(rng, lines)}{keepdim})", False)
    return Workload(
        task=workload.task(FAMILY, formula.source(spec.arguments), arrays),
        canonical=(*prologue.names, f"{spec.name}@{lines.where}"),
        bottleneck=rng.choice(BOTTLENECKS),
        writers=tuple(partial(form, spec) for form in _forms(lines)),
    )


def _forms(lines: Lines) -> tuple[Callable[[Spec, Random], Program], ...]:
    if not lines.contiguous:
        return (by_line, by_grid)
    return (by_row, by_warp, by_block) if lines.suit_warps else (by_row,)


BOTTLENECKS = (
    "Each output compares every element of its line; one read per element and a value with its index to carry.",
    "The input is read once; the first of equal values must win, so ties decide how partial results combine.",
)


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    extents: Extents
    spec: Spec
    kernel: str
    pick: str  # variable of the index

    def scan(self, path: Walk) -> list[str]:
        """Statements that leave the best value and its position, of the elements this thread takes."""
        spec = self.spec
        operands = {o.name: f"{o.name}[{path.at}]" for o in spec.prologue.operands}
        value = chains.value(spec.prologue, f"{spec.main}[{path.at}]", operands, self.style.value)
        test = block(
            f"if ({self.style.value} {spec.better} best)",
            [f"best = {self.style.value};", f"{self.pick} = {path.position};"],
        )
        return [f"float best = {spec.start};", f"int {self.pick} = 0;", *path.loop([*value, *test])]

    def program(self, path: Walk, body: list[str]) -> str:
        wording, spec = self.style, self.spec
        pointers = (spec.main, *spec.prologue.pointers)
        parameters = (
            *wording.pointers(pointers),
            wording.pointer(wording.out, "long long*"),
            *(f"int {name}" for name, _ in path.integers),
        )
        kernel = Kernel(self.kernel, parameters, (*path.intro, *body))
        values = tuple(value for _, value in path.integers)
        launch = Launch(self.kernel, path.grid, path.threads, (*pointers, wording.out, *values))
        out = f"{wording.out} = cp.empty({self.extents.reduced(spec.keepdim)}, cp.int64)"
        statements = [self.extents.statement, out, launch.line(), f"return {wording.out}"]
        return render(wording, [kernel], spec.arguments, statements)

    def wins(self, value: str, index: str) -> str:
        """Condition that another thread's result is better, or equal and earlier."""
        return f"{value} {self.spec.better} best || ({value} == best && {index} < {self.pick})"


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...]) -> Setting:
    pick = rng.choice(("pick", "arg", "best_index", "where"))
    taken = (*spec.arguments, "best", "base", "inner", "depth", "t", "s", pick)
    wording = style.draw(rng, taken, blocks)
    extents = layout.extents(rng, spec.lines, spec.main, (*spec.arguments, wording.out))
    name = reduction_name(rng, spec.prologue, spec.name, spec.lines.contiguous)
    return Setting(wording, extents, spec, name, pick)


def by_row(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128, 256))
    path = walk.thread_per_row(setting.style, setting.extents)
    return Program(
        text=setting.program(path, [*setting.scan(path), f"{setting.style.out}[{path.line}] = {setting.pick};"]),
        form="arg_row",
        techniques=("one row per thread",),
        design=f"One thread per row keeps value and index, the first of equals; blocks of {setting.style.block}.",
        trait="gives a whole row to one thread, with no barrier",
    )


def by_line(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, style.BLOCKS)
    path = walk.thread_per_line(setting.style, setting.extents)
    return Program(
        text=setting.program(path, [*setting.scan(path), f"{setting.style.out}[{path.line}] = {setting.pick};"]),
        form="arg_line",
        techniques=("one output per thread", "coalesced access"),
        design=f"One thread per output keeps value and index, the first of equals; blocks of {setting.style.block}.",
        trait="gives each output to one thread that walks its strided line",
    )


def by_grid(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, style.BLOCKS)
    path = walk.thread_per_line_2d(setting.style, setting.extents)
    return Program(
        text=setting.program(path, [*setting.scan(path), f"{setting.style.out}[{path.line}] = {setting.pick};"]),
        form="arg_grid",
        techniques=("2-D grid", "coalesced access"),
        design=f"A 2-D grid, blockIdx.y the outer index, one thread per output, blocks of {setting.style.block}.",
        trait="finds its line from a 2-D grid without divisions",
    )


def by_warp(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32,))
    path = walk.warp_per_row(setting.style, setting.extents)
    pick = setting.pick
    merge = block(
        "for (int s = 16; s > 0; s /= 2)",
        [
            "float other = __shfl_down_sync(0xffffffff, best, s);",
            f"int index = __shfl_down_sync(0xffffffff, {pick}, s);",
            *block(f"if ({setting.wins('other', 'index')})", ["best = other;", f"{pick} = index;"]),
        ],
    )
    return Program(
        text=setting.program(
            path, [*setting.scan(path), *merge, f"if (threadIdx.x == 0) {setting.style.out}[{path.line}] = {pick};"]
        ),
        form="arg_warp",
        techniques=("one warp per row", "warp shuffles"),
        design="One warp per row; lanes shuffle value and index together, the smaller index wins a tie.",
        trait="gives each row to one warp that shuffles value and index",
    )


def by_block(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, spec.lines.blocks((32, 64, 128)))
    path = walk.block_per_row(setting.style, setting.extents)
    pick, threads = setting.pick, setting.style.block
    body = [
        f"__shared__ float values[{threads}];",
        f"__shared__ int places[{threads}];",
        *setting.scan(path),
        "values[threadIdx.x] = best;",
        f"places[threadIdx.x] = {pick};",
        "__syncthreads();",
        *block(
            "if (threadIdx.x == 0)",
            [
                *block(
                    f"for (int s = 1; s < {threads}; ++s)",
                    block(
                        f"if ({setting.wins('values[s]', 'places[s]')})",
                        ["best = values[s];", f"{pick} = places[s];"],
                    ),
                ),
                f"{setting.style.out}[{path.line}] = {pick};",
            ],
        ),
    ]
    return Program(
        text=setting.program(path, body),
        form="arg_block",
        techniques=("one block per row", "shared memory"),
        design=f"One block of {threads} threads per row; thread 0 combines values and indices, ties to the smaller.",
        trait=f"combines {threads} partial results in one thread of each block",
    )
