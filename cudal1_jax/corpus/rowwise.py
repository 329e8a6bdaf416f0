"""Row-wise functions: softmax and norms over the last, trailing or an inner dimension, with steps before and after."""

import dataclasses
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style, walk, workload
from cudal1_jax.corpus.chain import Chain, Formula, Operand
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import pick_main, row_name
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.reduction import dim_text
from cudal1_jax.corpus.rowkind import KINDS, RowKind
from cudal1_jax.corpus.style import Style
from cudal1_jax.corpus.walk import Walk
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "rowwise"
BLOCKS = (64, 128, 128, 256)  # threads that share a row
CASES = (
    *("negated", "large", "heavy_tailed", "one_changed", "structured"),
    *("shifted", "permuted", "small", "integers"),
)


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

    @property
    def pointers(self) -> tuple[str, ...]:
        """Arrays a kernel reads: in a set order, whatever the order of the task's arguments."""
        affine = tuple(name for name in (self.weight, self.bias) if name)
        return (self.main, *self.prologue.pointers, *affine, *self.epilogue.pointers)


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    kind = rng.choices(KINDS, [kind.weight for kind in KINDS])[0]
    contiguous = rng.random() < 0.75 or kind.affine
    lines = layout.draw_rows(rng, elements) if contiguous else layout.draw_strided(rng, elements)
    main = pick_main(rng)
    before, after = rng.choice(((0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (0, 2), (2, 0)))
    single = len(lines.dims) == 1 and contiguous
    places = ("full", "row", "row", "scalar") if single else ("full", "scalar")
    first, first_arrays = draw_operands(rng, lines.shape, int(before > 0 and rng.random() < 0.3), main, places)
    weight, bias, affine = _affine(rng, kind, lines, main)
    taken = (main, *(array.name for array in (*first_arrays, *affine)))
    last, last_arrays = _others(rng, lines, int(after > 0 and rng.random() < 0.35), taken, places)
    prologue = chains.draw(rng, before, first)
    epilogue = chains.draw(rng, after, last, known=kind.gives)
    init = rng.choice(("uniform(0,1)", "normal(0,1)"))
    arrays = (Array(main, lines.shape, init=init), *first_arrays, *affine, *last_arrays)
    spec = Spec(
        prologue, kind, rng.choice(("1e-5", "1e-5", "1e-6")), weight, bias, epilogue, main, lines,
        tuple(array.name for array in arrays),
    )  # fmt: skip
    return Workload(
        task=workload.task(FAMILY, _source(rng, spec), arrays, _cases(spec)),
        canonical=(*prologue.names, f"{kind.name}@{lines.where}{_affine_mark(spec)}", *epilogue.names),
        bottleneck=rng.choice(kind.bottlenecks),
        writers=tuple(partial(form, spec) for form in _forms(spec)),
    )


def _affine(rng: Random, kind: RowKind, lines: Lines, main: str) -> tuple[str | None, str | None, tuple[Array, ...]]:
    if not kind.affine or (kind.affine != "required" and rng.random() < 0.35):
        return None, None, ()
    shape = tuple(lines.shape[dim] for dim in lines.dims)
    weight, bias = rng.choice((("weight", "bias"), ("ln_weight", "ln_bias"), ("gamma", "beta"), ("w", "b")))
    arrays = [Array(weight, shape, init=rng.choice(("constant(1)", "normal(0,1)", "uniform(0,1)")))]
    if not kind.bias:
        return weight, None, tuple(arrays)
    arrays.append(Array(bias, shape, init=rng.choice(("constant(0)", "normal(0,1)"))))
    return weight, bias, tuple(arrays)


def _others(
    rng: Random, lines: Lines, number: int, taken: tuple[str, ...], places: tuple[str, ...]
) -> tuple[tuple[Operand, ...], tuple[Array, ...]]:
    while True:
        operands, arrays = draw_operands(rng, lines.shape, number, taken[0], places)
        if not {array.name.lower() for array in arrays} & {name.lower() for name in taken}:
            return operands, arrays


def _affine_mark(spec: Spec) -> str:
    return "+affine" if spec.weight else ""


def _source(rng: Random, spec: Spec) -> str:
    formula = Formula.drawn(rng, spec.main, spec.arguments)
    formula.steps(spec.prologue)
    shape = tuple(spec.lines.shape[dim] for dim in spec.lines.dims)
    for template, infix in spec.kind.nn(rng):
        text = template.replace("{dim}", dim_text(rng, spec.lines)).replace("{eps}", spec.eps)
        text = text.replace("{shape}", f"{spec.weight}.shape" if spec.weight and rng.random() < 0.7 else str(shape))
        text = text.replace("{w}", spec.weight or "").replace("{b}", spec.bias or "")
        text = text.replace(
            "{affine}", f", {spec.weight}" + (f", {spec.bias}" if spec.bias else "") if spec.weight else ""
        )
        formula.apply(text, infix)
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)


def _cases(spec: Spec) -> tuple[str, ...] | None:
    """Correctness cases that make sense, None for all.

    Equal values in a row leave nothing of a centred row but the rounding of its mean, times 1 / sqrt(eps); only
    values that sum exactly, without steps before, can be told from an error.
    """
    if spec.kind.centred and spec.prologue.steps:
        return tuple(case for case in CASES if case != "structured")
    return None


def _forms(spec: Spec) -> tuple:
    short = spec.lines.length <= layout.LONGEST_SUM
    forms = [thread_passes] if short else []
    if spec.lines.contiguous:
        forms += [warp_passes] if spec.lines.suit_warps else []
        forms += [block_passes] if spec.lines.blocks(BLOCKS) else []
        if short and spec.kind.name == "softmax" and not spec.prologue.steps and len(spec.epilogue.steps) < 2:
            forms.append(kept_exponentials)
    else:
        forms.append(grid_passes)
    if short and spec.kind.single_pass:
        forms.append(one_pass)
    return tuple(forms)


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
            if combine:
                lines.append(f"{item.name} = {item.combine}({item.name}{', part' if path.threads != '32' else ''});")
            if item.finish:
                lines.append(self.filled(item.finish, path))
        return lines

    def filled(self, text: str, path: Walk) -> str:
        return text.replace("{n}", path.length).replace("{eps}", f"{self.spec.eps}f")

    def final(self, path: Walk) -> list[str]:
        """The loop that writes the outputs."""
        final, head = self.spec.kind.final, []
        if self.reciprocal:
            final, head = final.replace("/ total", "* inverse"), ["float inverse = 1.0f / total;"]
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
        target = f"{self.style.out}[{path.at}]"
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
        out = f"{wording.out} = cp.empty({spec.main}.shape, cp.float32)"
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
    taken = (*spec.arguments, "total", "best", "mean", "part", "inner", "depth", "base", "inverse")
    wording = style.draw(rng, taken, blocks)
    extents = layout.extents(rng, spec.lines, spec.main, (*spec.arguments, wording.out))
    reciprocal = "/ total" in spec.kind.final and rng.random() < 0.35
    name = row_name(rng, spec.prologue, spec.kind.name, spec.epilogue)
    return Setting(wording, extents, spec, name, reciprocal)


def _passes(spec: Spec) -> str:
    count = len(spec.kind.passes) + 1
    return f"{count} passes over the row"


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
    single = spec.kind.single_pass
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
        design=f"One thread per {'row' if contiguous else 'line'}; {single.technique}, then the pass that writes.",
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
        "float best = -INFINITY;",
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
    loop = block("for (int s = 16; s > 0; s /= 2)", [merge])
    return block(f"__device__ float {name}(float v)", [*loop, "return v;"])


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
