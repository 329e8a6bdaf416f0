"""Programs for row-wise functions: who takes a row, and in how many passes its statistics are found."""

import dataclasses
import re
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style, walk
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import row_name
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.rowkind import RowKind
from cudal1_jax.corpus.style import Style
from cudal1_jax.corpus.walk import Walk

BLOCKS = (64, 128, 128, 256)  # threads that share a row


@dataclasses.dataclass(frozen=True)
class Spec:
    """A row-wise task: steps before, the function along `lines`, optional weight and bias, steps after."""

    prologue: Chain
    kind: RowKind
    eps: str
    weight: str | None  # affine parameters, of the shape of one line
    bias: str | None
    epilogue: Chain
    main: str
    lines: Lines
    arguments: tuple[str, ...]
    keepdim: bool = False  # of a function that gives one value per line

    @property
    def pointers(self) -> tuple[str, ...]:
        """Arrays a kernel reads: in a set order, whatever the order of the task's arguments."""
        affine = tuple(name for name in (self.weight, self.bias) if name)
        return (self.main, *self.prologue.pointers, *affine, *self.epilogue.pointers)


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    extents: Extents
    spec: Spec
    kernel: str
    reciprocal: bool  # a division in the last loop becomes a product with a hoisted reciprocal

    def operands(self, chain: Chain, at: str, position: str) -> dict[str, str]:
        texts = {"full": at, "row": position, "scalar": "0"}
        return {operand.name: f"{operand.name}[{texts[operand.place]}]" for operand in chain.operands}

    def value(self, path: Walk, uses: int) -> tuple[list[str], str]:
        """Statements and expression of an element after the prologue, where the expression stands `uses` times."""
        spec = self.spec
        operands = self.operands(spec.prologue, path.at, path.position)
        load = f"{spec.main}[{path.at}]"
        if uses > 1:
            return chains.value(spec.prologue, load, operands, self.style.value), self.style.value
        lines, last = chains.statements(spec.prologue, load, operands, self.style.value)
        if last != load:  # an expression with operators needs a name before it is put into another
            return chains.value(spec.prologue, load, operands, self.style.value), self.style.value
        return lines, last

    def folds(self, path: Walk, combine: bool) -> list[str]:
        """Every pass over the line, each leaving its statistic in a variable."""
        lines: list[str] = []
        for item in self.spec.kind.passes:
            value_lines, v = self.value(path, item.update.count("{v}"))
            lines.append(f"float {item.name} = {item.start};")
            lines += path.loop([*value_lines, item.update.format(v=v, a=item.name)])
            finish = self.filled(item.finish, path)
            if combine:
                whole = f"{item.combine}({item.name}{', part' if path.threads != '32' else ''})"
                head, equals, rest = (finish or f"{item.name} = {item.name};").partition(" = ")
                finish = head + equals + re.sub(rf"\b{item.name}\b", whole, rest)
                assert whole in finish, f"lanes are not combined by {finish!r}: write it as name = expression"
            lines += [finish] if finish else []
        return lines

    def filled(self, text: str, path: Walk) -> str:
        return text.replace("{n}", path.length).replace("{eps}", f"{self.spec.eps}f")

    def final(self, path: Walk) -> list[str]:
        """The loop that writes the outputs."""
        final, head = self.spec.kind.final, []
        if self.reciprocal:
            divisor = "norm" if "/ norm" in final else "total"
            final, head = final.replace(f"/ {divisor}", "* inverse"), [f"float inverse = 1.0f / {divisor};"]
        if self.spec.kind.reduces:
            lines = self.store(path, self.filled(final, path))
            return lines if path.stride == "1" else block("if (threadIdx.x == 0)", lines)
        value_lines, v = self.value(path, final.count("{v}"))
        return [*head, *path.loop([*value_lines, *self.store(path, final.replace("{v}", v))])]

    @property
    def techniques(self) -> tuple[str, ...]:
        return ("fusion", "hoisted reciprocal") if self.reciprocal else ("fusion",)

    def store(self, path: Walk, result: str) -> list[str]:
        """Statements that apply weight, bias and epilogue to the expression `result` and write it."""
        spec = self.spec
        if spec.weight:
            result = f"{_factor(result)} * {spec.weight}[{path.position}]"
        if spec.bias:
            result = f"{result} + {spec.bias}[{path.position}]"
        target = f"{self.style.out}[{path.line if spec.kind.reduces else path.at}]"
        if not spec.epilogue.steps:
            return [f"{target} = {result};"]
        name = "y" if "y" not in spec.arguments and self.style.value != "y" else "z0"
        lines, last = chains.in_place(spec.epilogue, name, self.operands(spec.epilogue, path.at, path.position))
        return [f"float {name} = {result};", *lines, f"{target} = {last};"]

    def program(self, path: Walk, body: list[str], helpers: list[str]) -> str:
        wording, spec = self.style, self.spec
        parameters = (
            *wording.pointers(spec.pointers),
            wording.pointer(wording.out, "float*"),
            *(f"int {name}" for name, _ in path.integers),
        )
        kernel = Kernel(self.kernel, parameters, (*path.intro, *body))
        values = tuple(value for _, value in path.integers)
        launch = Launch(self.kernel, path.grid, path.threads, (*spec.pointers, wording.out, *values))
        shape = self.extents.reduced(spec.keepdim) if spec.kind.reduces else f"{spec.main}.shape"
        out = f"{wording.out} = cp.empty({shape}, cp.float32)"
        statements = [self.extents.statement, out, launch.line(), f"return {wording.out}"]
        return render(wording, [kernel], spec.arguments, statements, helpers)


def _factor(text: str) -> str:
    """`text` as a factor of a product: parentheses around a sum or difference at its top level."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in "+-" and text[place - 1 : place + 2] == f" {letter} ":
            return f"({text})"
    return text


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...]) -> Setting:
    taken = (
        *spec.arguments,
        "total",
        "best",
        "mean",
        "norm",
        "rrms",
        "part",
        "inner",
        "depth",
        "base",
        "inverse",
        "j",
        "row",
        "m",
        "n",
    )
    wording = style.draw(rng, taken, blocks)
    if spec.weight:  # the longest programs of the corpus: short names keep them in
        wording = dataclasses.replace(wording, restrict=False, rows="m", columns="n", column="j", row="row")
    extents = layout.extents(rng, spec.lines, spec.main, (*spec.arguments, wording.out))
    reciprocal = "/" in spec.kind.final and not spec.kind.reduces and rng.random() < 0.35
    name = row_name(rng, spec.prologue, spec.kind.name, spec.epilogue)
    return Setting(wording, extents, spec, name, reciprocal)


def _passes(spec: Spec) -> str:
    count = len(spec.kind.passes) + (not spec.kind.reduces)
    return f"{count} pass{'es' if count > 1 else ''} over the row"


def thread_passes(spec: Spec, rng: Random) -> Program:
    contiguous = spec.lines.contiguous
    setting = _setting(spec, rng, (32, 64, 128, 256) if contiguous else style.BLOCKS)
    path = (walk.thread_per_row if contiguous else walk.thread_per_line)(setting.style, setting.extents)
    body = [*setting.folds(path, combine=False), *setting.final(path)]
    what = "row" if contiguous else "strided line"
    return Program(
        text=setting.program(path, body, []),
        form="thread",
        techniques=(f"one {what} per thread", *setting.techniques),
        design=f"One thread per {what}, {_passes(spec)}, blocks of {setting.style.block}.",
        trait=f"gives each {what} to one thread and needs no barrier",
    )


def grid_passes(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128, 256))
    path = walk.thread_per_line_2d(setting.style, setting.extents)
    body = [*setting.folds(path, combine=False), *setting.final(path)]
    return Program(
        text=setting.program(path, body, []),
        form="grid2d",
        techniques=("2-D grid", "coalesced access", *setting.techniques),
        design=f"A 2-D grid, blockIdx.y the outer index, one thread per line, blocks of {setting.style.block}.",
        trait="finds its line from a 2-D grid without divisions",
    )


def one_pass(spec: Spec, rng: Random) -> Program:
    """Statistics in a single pass: online softmax, Welford's variance."""
    contiguous = spec.lines.contiguous
    setting = _setting(spec, rng, (32, 64, 128))
    path = (walk.thread_per_row if contiguous else walk.thread_per_line)(setting.style, setting.extents)
    single, after = spec.kind.single_pass, "" if spec.kind.reduces else ", then the pass that writes"
    assert single is not None, "one_pass is a form of kinds that have a single pass only"
    value_lines, v = setting.value(path, 2)
    updates = [line.format(v=v, k=path.position) for line in single.updates]
    body = [
        *single.starts,
        *path.loop([*value_lines, *updates]),
        *(setting.filled(line, path) for line in single.finish),
        *setting.final(path),
    ]
    return Program(
        text=setting.program(path, body, []),
        form="one_pass",
        techniques=(single.technique, "one row per thread", *setting.techniques),
        design=f"One thread per {'row' if contiguous else 'line'}; {single.technique}{after}.",
        trait=f"finds its statistics in a single pass ({single.technique})",
    )


def warp_passes(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32,))
    path = walk.warp_per_row(setting.style, setting.extents)
    helpers = [line for name in _combines(spec) for line in WARP[name]]
    return Program(
        text=setting.program(path, [*setting.folds(path, combine=True), *setting.final(path)], helpers),
        form="warp",
        techniques=("one warp per row", "warp shuffles", *setting.techniques),
        design=f"One warp per row, {_passes(spec)}; lanes combine with xor shuffles, no shared memory.",
        trait="gives each row to one warp that combines with shuffles",
    )


def warp_online(spec: Spec, rng: Random) -> Program:
    """Online softmax by the lanes of a warp: each has a maximum and a sum of its own, which shuffles bring together."""
    single = spec.kind.single_pass
    assert single is not None, "warp_online is a form of kinds that have a single pass only"
    setting = _setting(spec, rng, (32,))
    path = walk.warp_per_row(setting.style, setting.extents)
    value_lines, v = setting.value(path, 2)
    body = [
        *single.starts,
        *path.loop([*value_lines, *(line.format(v=v, k=path.position) for line in single.updates)]),
        "float top = all_max(best);",
        "total = all_sum(total * expf(best - top));",
        "best = top;",
        *(setting.filled(line, path) for line in single.finish),
        *setting.final(path),
    ]
    return Program(
        text=setting.program(path, body, [*WARP["all_max"], *WARP["all_sum"]]),
        form="warp_online",
        techniques=(single.technique, "one warp per row", "warp shuffles", *setting.techniques),
        design=f"One warp per row, {single.technique} in every lane, then shuffles bring maxima and sums together.",
        trait="finds maximum and sum in a single pass by the lanes of one warp",
    )


def block_passes(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, spec.lines.blocks(BLOCKS))
    path = walk.block_per_row(setting.style, setting.extents)
    helpers = [line for name in _combines(spec) for line in BLOCK[name]]
    shared = f"__shared__ float part[{setting.style.block}];"
    body = [shared, *setting.folds(path, combine=True), *setting.final(path)]
    return Program(
        text=setting.program(path, body, helpers),
        form="block_tree",
        techniques=("one block per row", "shared-memory reduction", *setting.techniques),
        design=f"One block of {setting.style.block} threads per row, {_passes(spec)}, shared-memory trees.",
        trait="pays for barriers of a shared-memory tree in every row",
    )


def kept_exponentials(spec: Spec, rng: Random) -> Program:
    """The exponentials are written once and scaled in place, so that each is computed once."""
    setting = _setting(spec, rng, (32, 64, 128))
    path = walk.thread_per_row(setting.style, setting.extents)
    wording, at = setting.style, path.at
    load = f"{spec.main}[{at}]"
    body = [
        "float best = -3e38f;",
        *path.loop([f"best = fmaxf(best, {load});"]),
        "float total = 0.0f;",
        *path.loop([f"float e = expf({load} - best);", f"{wording.out}[{at}] = e;", "total += e;"]),
        "float inverse = 1.0f / total;",
        *path.loop(setting.store(path, f"{wording.out}[{at}] * inverse")),
    ]
    return Program(
        text=setting.program(path, body, []),
        form="kept",
        techniques=("one row per thread", "kept exponentials", "hoisted reciprocal"),
        design=f"One thread per row; exponentials are written once, then scaled in place, blocks of {wording.block}.",
        trait="computes every exponential once and scales in place",
    )


def _combines(spec: Spec) -> list[str]:
    return sorted({item.combine for item in spec.kind.passes})


def _warp(name: str, merge: str) -> list[str]:
    return block(f"__device__ float {name}(float v)", [f"for (int s = 16; s > 0; s /= 2) {merge}", "return v;"])


def _block(name: str, merge: str) -> list[str]:
    body = [
        "int t = threadIdx.x;",
        "part[t] = v;",
        "__syncthreads();",
        *block("for (int s = blockDim.x / 2; s > 0; s /= 2)", [f"if (t < s) {merge}", "__syncthreads();"]),
        "v = part[0];",
        "__syncthreads();",
        "return v;",
    ]
    return block(f"__device__ float {name}(float v, float* part)", body)


WARP = {
    "all_sum": _warp("all_sum", "v += __shfl_xor_sync(0xffffffff, v, s);"),
    "all_max": _warp("all_max", "v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, s));"),
}
BLOCK = {
    "all_sum": _block("all_sum", "part[t] += part[t + s];"),
    "all_max": _block("all_max", "part[t] = fmaxf(part[t], part[t + s]);"),
}


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """The forms that suit a task, the plain one first."""
    short = spec.lines.length <= spec.kind.longest
    suited = [thread_passes] if short else []
    if spec.lines.contiguous:
        suited += [warp_passes] if spec.lines.suit_warps else []
        suited += [warp_online] if spec.lines.suit_warps and spec.kind.online else []
        suited += [block_passes] if spec.lines.blocks(BLOCKS) else []
        if short and spec.kind.name == "softmax" and not spec.prologue.steps and len(spec.epilogue.steps) < 2:
            suited.append(kept_exponentials)
    else:
        suited.append(grid_passes)
    if short and spec.kind.single_pass:
        suited.append(one_pass)
    return tuple(suited)
