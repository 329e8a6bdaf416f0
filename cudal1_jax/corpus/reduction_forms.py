"""Programs for reductions: who takes a line, and how partial results meet."""

import dataclasses
from collections.abc import Callable, Sequence
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.fold import Fold
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import reduction_name
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.style import Style

BLOCKS = (32, 64, 64, 128, 128, 256)  # threads that share a row


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


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...] = style.BLOCKS) -> Setting:
    wording = style.draw(
        rng, (*spec.arguments, "total", "best", "base", "depth", "inner", "first", "p", "c", "s", "id"), blocks
    )
    extents = layout.extents(rng, spec.lines, spec.main, (*spec.arguments, wording.out))
    name = rng.choice((spec.title, f"{spec.title}_kernel")) if spec.title else None
    return Setting(
        wording, extents, spec, name or reduction_name(rng, spec.prologue, spec.fold.name, spec.lines.contiguous)
    )


def row_per_thread(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128, 256))
    wording, extents, acc = setting.style, setting.extents, spec.fold.variable
    row, j, columns = wording.row, wording.column, wording.columns
    loop = block(f"for (int {j} = 0; {j} < {columns}; ++{j})", setting.update(acc, f"{row} * {columns} + {j}", j))
    inside = [f"float {acc} = {spec.fold.start};", *loop, *setting.store(acc, row, columns)]
    body = [f"int {row} = {wording.thread};", *block(f"if ({row} < {wording.rows})", inside)]
    integers = {wording.rows: extents.lines, columns: extents.length}
    return Program(
        text=setting.program(body, integers, wording.grid(extents.lines), str(wording.block)),
        form="row_thread",
        techniques=("one row per thread",),
        design=f"One thread per row, the {spec.fold.name} in a register, blocks of {wording.block}, no barriers.",
        trait="gives a whole row to one thread, with no barrier",
    )


def row_accumulators(spec: Spec, rng: Random) -> Program:
    """Several accumulators per thread break the chain of dependent additions."""
    setting = _setting(spec, rng, (32, 64, 128))
    wording, extents, acc = setting.style, setting.extents, spec.fold.variable
    row, j, columns = wording.row, wording.column, wording.columns
    ways = rng.choice((2, 4, 4))
    names = [f"{acc}{k}" for k in range(ways)]
    at = f"{row} * {columns} + {j}"
    starts = ", ".join(f"{name} = {spec.fold.start}" for name in names)
    inner = [line for k, name in enumerate(names) for line in _scoped(setting.update(name, _plus(at, k), _plus(j, k)))]
    body = [
        f"int {row} = {wording.thread};",
        f"if ({row} >= {wording.rows}) return;",
        f"float {starts};",
        f"int {j} = 0;",
        *block(f"for (; {j} + {ways - 1} < {columns}; {j} += {ways})", inner),
        *block(f"for (; {j} < {columns}; ++{j})", setting.update(names[0], at, j)),
        *(spec.fold.merged(names[0], name) for name in names[1:]),
        *setting.store(names[0], row, columns),
    ]
    integers = {wording.rows: extents.lines, columns: extents.length}
    return Program(
        text=setting.program(body, integers, wording.grid(extents.lines), str(wording.block)),
        form="row_accumulators",
        techniques=("one row per thread", "several accumulators", "loop unrolling"),
        design=f"One thread per row, {ways} independent accumulators, blocks of {wording.block}.",
        trait=f"keeps {ways} independent accumulators per thread",
    )


def block_tree(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, spec.lines.blocks(BLOCKS))
    wording, extents, acc = setting.style, setting.extents, spec.fold.variable
    row, j, columns, threads = wording.row, wording.column, wording.columns, wording.block
    part = rng.choice(("part", "shared", "partial", "cache"))
    t = rng.choice(("t", "tid", "lane")) if wording.value != "t" else "tid"
    head = f"for (int {j} = {t}; {j} < {columns}; {j} += {threads})"
    body = [
        f"__shared__ float {part}[{threads}];",
        f"int {row} = blockIdx.x, {t} = threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(head, setting.update(acc, f"{row} * {columns} + {j}", j)),
        f"{part}[{t}] = {acc};",
        "__syncthreads();",
        *block(
            f"for (int s = {threads // 2}; s > 0; s /= 2)",
            [f"if ({t} < s) {spec.fold.merged(f'{part}[{t}]', f'{part}[{t} + s]')}", "__syncthreads();"],
        ),
        *_store_by_first(setting, f"{part}[0]", row, columns, t),
    ]
    return Program(
        text=setting.program(body, {columns: extents.length}, extents.lines, str(threads)),
        form="block_tree",
        techniques=("one block per row", "shared-memory reduction"),
        design=f"One block of {threads} threads per row; partial results meet in a shared-memory tree.",
        trait=f"runs a shared-memory tree of {threads} threads with barriers for every row",
    )


def warp_per_row(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32,))
    wording, extents, acc = setting.style, setting.extents, spec.fold.variable
    row, j, columns = wording.row, wording.column, wording.columns
    shuffle = f"__shfl_down_sync(0xffffffff, {acc}, s)"
    head = f"for (int {j} = threadIdx.x; {j} < {columns}; {j} += 32)"
    body = [
        f"int {row} = blockIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(head, setting.update(acc, f"{row} * {columns} + {j}", j)),
        *block("for (int s = 16; s > 0; s /= 2)", [spec.fold.merged(acc, shuffle)]),
        *_store_by_first(setting, acc, row, columns, "threadIdx.x"),
    ]
    return Program(
        text=setting.program(body, {columns: extents.length}, extents.lines, "32"),
        form="warp",
        techniques=("one warp per row", "warp shuffles"),
        design="One warp per row; lanes stride over the columns and combine with shuffles, no shared memory.",
        trait="gives each row to one warp that combines with shuffles",
    )


def vector_row(spec: Spec, rng: Random) -> Program:
    """Rows of a multiple of four elements, read as float4 by a thread or a warp."""
    setting = _setting(spec, rng, (32, 64))
    wording, extents, acc = setting.style, setting.extents, spec.fold.variable
    row, j, columns = wording.row, wording.column, wording.columns
    function = "f" if "f" not in spec.arguments else "g"
    value = "v" if "v" not in spec.arguments else "q"
    helper = chains.device_function(spec.prologue, function, value) if spec.prologue.steps else []
    places = {operand.name: operand.place for operand in spec.prologue.operands}
    names = (spec.main, *places)
    starts = {name: name if places.get(name) == "row" else f"{name} + {row} * {columns}" for name in names}
    registers = {name: f"{name}4" for name in names}
    loads = [f"float4 {registers[name]} = ((const float4*)({starts[name]}))[{j}];" for name in names]

    def part(letter: str) -> str:
        values = ", ".join(f"{registers[name]}.{letter}" for name in names)
        return f"{function}({values})" if spec.prologue.steps else values

    updates = [spec.fold.update(acc, part(letter)) for letter in "xyzw"]
    warp = spec.lines.length > layout.LONGEST_SUM or (spec.lines.length >= 128 and rng.random() < 0.5)
    first, step = ("threadIdx.x", f"{j} += 32") if warp else ("0", f"++{j}")
    loop = block(f"for (int {j} = {first}; {j} < {columns} / 4; {step})", [*loads, *updates])
    head = [f"float {acc} = {spec.fold.start};", *loop]
    if warp:
        shuffle = f"__shfl_down_sync(0xffffffff, {acc}, s)"
        merge = block("for (int s = 16; s > 0; s /= 2)", [spec.fold.merged(acc, shuffle)])
        body = [f"int {row} = blockIdx.x;", *head, *merge, *_store_by_first(setting, acc, row, columns, "threadIdx.x")]
        text = setting.program(body, {columns: extents.length}, extents.lines, "32", helper)
    else:
        body = [f"int {row} = {wording.thread};", f"if ({row} >= {wording.rows}) return;", *head]
        body += setting.store(acc, row, columns)
        integers = {wording.rows: extents.lines, columns: extents.length}
        text = setting.program(body, integers, wording.grid(extents.lines), str(wording.block), helper)
    who = "One warp" if warp else "One thread"
    return Program(
        text=text,
        form="vector_row",
        techniques=("vectorised loads", *(("one warp per row", "warp shuffles") if warp else ("one row per thread",))),
        design=f"{who} per row reads it as float4, since its length is a multiple of four.",
        trait="reads four elements at a time as float4",
    )


def line_per_thread(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    wording, acc = setting.style, spec.fold.variable
    i, k = "id", wording.column
    at, base = _strided(setting, i, k)
    loop = block(f"for (int {k} = 0; {k} < depth; ++{k})", setting.update(acc, at, k))
    inside = [*base, f"float {acc} = {spec.fold.start};", *loop, *setting.store(acc, i, "depth")]
    body = [f"int {i} = {wording.thread};", *block(f"if ({i} < {wording.count})", inside)]
    return Program(
        text=setting.program(body, *_strided_launch(setting, 1)),
        form="line_thread",
        techniques=("one output per thread", "coalesced access"),
        design=f"One thread per output, neighbours on neighbouring columns, blocks of {wording.block}.",
        trait="gives each output to one thread that walks its strided line",
    )


def line_accumulators(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    wording, acc = setting.style, spec.fold.variable
    i, k = "id", wording.column
    at, base = _strided(setting, i, k)
    names = [f"{acc}0", f"{acc}1"]
    step = at.replace(f"{k} *", f"({k} + 1) *")
    body = [
        f"int {i} = {wording.thread};",
        f"if ({i} >= {wording.count}) return;",
        *base,
        f"float {names[0]} = {spec.fold.start}, {names[1]} = {spec.fold.start};",
        f"int {k} = 0;",
        *block(
            f"for (; {k} + 1 < depth; {k} += 2)",
            [*_scoped(setting.update(names[0], at, k)), *_scoped(setting.update(names[1], step, f"{k} + 1"))],
        ),
        *[f"if ({k} < depth) {{", *(f"  {line}" for line in setting.update(names[0], at, k)), "}"],
        spec.fold.merged(names[0], names[1]),
        *setting.store(names[0], i, "depth"),
    ]
    return Program(
        text=setting.program(body, *_strided_launch(setting, 1)),
        form="line_accumulators",
        techniques=("one output per thread", "several accumulators", "loop unrolling"),
        design=f"One thread per output, accumulators for even and odd elements, blocks of {wording.block}.",
        trait="keeps two independent accumulators per output",
    )


def outputs_per_thread(spec: Spec, rng: Random) -> Program:
    """Several neighbouring outputs per thread, accumulated in registers."""
    setting = _setting(spec, rng, (32, 64, 128))
    wording, acc = setting.style, spec.fold.variable
    items = rng.choice((4, 8))
    k, c, first = wording.column, "p", "first"
    outer = bool(spec.lines.dims[0])
    base = "blockIdx.y * depth * inner + " if outer else ""
    at = f"{base}{k} * inner + {first} + {c}"
    place = f"blockIdx.y * inner + {first} + {c}" if outer else f"{first} + {c}"
    guard = f"if ({first} + {c} < inner)"
    body = [
        f"int {first} = ({wording.thread}) * {items};",
        f"float {acc}[{items}];",
        f"for (int {c} = 0; {c} < {items}; ++{c}) {acc}[{c}] = {spec.fold.start};",
        *block(
            f"for (int {k} = 0; {k} < depth; ++{k})",
            block(
                f"for (int {c} = 0; {c} < {items} && {first} + {c} < inner; ++{c})",
                setting.update(f"{acc}[{c}]", at, k),
            ),
        ),
        *block(f"for (int {c} = 0; {c} < {items}; ++{c})", block(guard, setting.store(f"{acc}[{c}]", place, "depth"))),
    ]
    grid = wording.grid(setting.extents.inner, wording.block * items)
    integers = {"depth": setting.extents.length, "inner": setting.extents.inner}
    grid = f"{grid}, {setting.extents.outer}" if outer else grid
    return Program(
        text=setting.program(body, integers, grid, str(wording.block)),
        form="outputs",
        techniques=("several items per thread", "register tiling"),
        design=f"Each thread keeps {items} neighbouring outputs in registers and reads whole pieces of rows.",
        trait=f"keeps {items} neighbouring outputs in the registers of a thread",
    )


def split_line(spec: Spec, rng: Random) -> Program:
    """A block of 32 columns x several parts of the line; the parts meet in shared memory."""
    setting = _setting(spec, rng, (32,))
    wording, acc = setting.style, spec.fold.variable
    parts = rng.choice((4, 8))
    k, part = wording.column, rng.choice(("part", "shared", "partial"))
    outer = bool(spec.lines.dims[0])
    at = f"{'blockIdx.y * depth * inner + ' if outer else ''}{k} * inner + c"
    place = "blockIdx.y * inner + c" if outer else "c"
    head = f"for (int {k} = threadIdx.y; c < inner && {k} < depth; {k} += {parts})"
    body = [
        f"__shared__ float {part}[{parts}][32];",
        "int c = blockIdx.x * 32 + threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(head, setting.update(acc, at, k)),
        f"{part}[threadIdx.y][threadIdx.x] = {acc};",
        "__syncthreads();",
        *block(
            "if (threadIdx.y == 0 && c < inner)",
            [
                f"for (int s = 1; s < {parts}; ++s) {spec.fold.merged(acc, f'{part}[s][threadIdx.x]')}",
                *setting.store(acc, place, "depth"),
            ],
        ),
    ]
    grid = f"({setting.extents.inner} + 31) // 32"
    integers = {"depth": setting.extents.length, "inner": setting.extents.inner}
    return Program(
        text=setting.program(body, integers, f"{grid}, {setting.extents.outer}" if outer else grid, f"32, {parts}"),
        form="split",
        techniques=("shared-memory reduction", "coalesced access", "2-D block"),
        design=f"Blocks of 32 columns by {parts} parts of the line; the parts meet in shared memory.",
        trait=f"splits each line over {parts} threads that meet in shared memory",
    )


def _strided(setting: Setting, i: str, k: str) -> tuple[str, list[str]]:
    """Flat index of element `k` of line `i`, and the statements it needs."""
    if setting.spec.lines.dims[0] == 0:
        return f"{k} * {setting.style.count} + {i}", []
    return f"base + {k} * inner", [f"int base = {i} / inner * depth * inner + {i} % inner;"]


def _strided_launch(setting: Setting, per_thread: int) -> tuple[dict[str, str], str, str]:
    wording, extents = setting.style, setting.extents
    integers = {"depth": extents.length, "inner": extents.inner, wording.count: extents.lines}
    if setting.spec.lines.dims[0] == 0:
        del integers["inner"]
    grid = wording.grid(extents.lines, wording.block * per_thread)
    return integers, grid, str(wording.block)


def _store_by_first(setting: Setting, accumulator: str, at: str, length: str, thread: str) -> list[str]:
    lines = setting.store(accumulator, at, length)
    if len(lines) == 1:
        return [f"if ({thread} == 0) {lines[0]}"]
    return block(f"if ({thread} == 0)", lines)


def _scoped(lines: list[str]) -> list[str]:
    """Statements that declare names of their own get a scope, so that they can be repeated."""
    return lines if len(lines) == 1 else ["{", *(f"  {line}" for line in lines), "}"]


def _plus(text: str, amount: int) -> str:
    return f"{text} + {amount}" if amount else text


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """Writers for a reduction, the plain one first."""
    if spec.lines.contiguous:
        alone = spec.fold.exact or spec.lines.length <= layout.LONGEST_SUM
        vectors = spec.lines.length % 4 == 0 and not (spec.fold.uses_value_twice and spec.prologue.steps)
        return (
            *((row_per_thread, row_accumulators) if alone else ()),
            *((block_tree,) if spec.lines.blocks(BLOCKS) else ()),
            *((warp_per_row,) if spec.lines.suit_warps else ()),
            *((vector_row,) if vectors else ()),
        )
    return (line_per_thread, line_accumulators, outputs_per_thread, split_line)
