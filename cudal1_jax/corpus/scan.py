"""Running sums and products along one dimension: inclusive, exclusive, reversed, masked, with steps around them."""

import dataclasses
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style, walk, workload
from cudal1_jax.corpus.chain import Chain, Formula
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import pick_main, scan_name
from cudal1_jax.corpus.operands import draw_operands
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.style import Style
from cudal1_jax.corpus.walk import Walk
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "scan"
TILES = (64, 128)  # elements scanned at a time in shared memory


@dataclasses.dataclass(frozen=True)
class Spec:
    """A scan of `main` after `prologue` along one dimension, with `epilogue` on every prefix."""

    prologue: Chain
    product: bool  # running product instead of sum
    reverse: bool  # from the end of the line
    exclusive: bool  # without the element itself
    mean: bool  # every prefix over its length
    epilogue: Chain
    main: str
    lines: Lines
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        words = ("reverse",) * self.reverse + ("exclusive",) * self.exclusive
        return "_".join((*words, "cumprod" if self.product else "cumsum"))

    @property
    def start(self) -> str:
        return "1.0f" if self.product else "0.0f"

    @property
    def operator(self) -> str:
        return "*=" if self.product else "+="

    @property
    def infix(self) -> str:
        return "*" if self.product else "+"


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    contiguous = rng.random() < 0.65
    rank = rng.choice((2, 2, 2, 3))
    shape = layout.draw_shape(rng, rank, elements)
    lines = Lines(shape, (rank - 1 if contiguous else rng.choice(range(rank - 1)),))
    if not contiguous and lines.length > layout.LONGEST_SUM:
        return draw(rng, elements)
    product = rng.random() < 0.15
    main = pick_main(rng)
    before, after = rng.choice(((0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (2, 0), (0, 2)))
    before = 0 if product else before
    operands, arrays = draw_operands(rng, shape, int(before > 0 and rng.random() < 0.4), main, ("full",))
    prologue, epilogue = chains.draw(rng, before, operands), chains.draw(rng, after)
    init = "uniform(0.5,1.5)" if product else rng.choice(("uniform(0,1)", "normal(0,1)"))
    arrays = (Array(main, shape, init=init), *arrays)
    spec = Spec(
        prologue, product, rng.random() < 0.3, not product and rng.random() < 0.25, False, epilogue, main, lines,
        tuple(array.name for array in arrays),
    )  # fmt: skip
    return Workload(
        task=workload.task(
            FAMILY,
            _source(rng, spec),
            arrays,
            PRODUCT_CASES if product else workload.cases_after_sum(len(epilogue.steps)),
        ),
        canonical=(*prologue.names, f"{spec.name}@{lines.where}", *epilogue.names),
        bottleneck=rng.choice(BOTTLENECKS),
        writers=tuple(partial(form, spec) for form in _forms(spec)),
    )


PRODUCT_CASES = ("negated", "small", "permuted", "structured")  # a product of thousand-fold values leaves float32
BOTTLENECKS = (
    "Every prefix needs the one before it; lines are independent, so the parallelism is over lines or over chunks.",
    "One read and one write per element, but each line is a chain of dependent additions.",
)


def _source(rng: Random, spec: Spec) -> str:
    dim = spec.lines.dims[0]
    formula = Formula.drawn(rng, spec.main, spec.arguments)
    formula.steps(spec.prologue)
    call = f"nn.{'cumprod' if spec.product else 'cumsum'}({{v}}, dim={dim})"
    if spec.reverse:
        flip = rng.choice((f"nn.flip({{v}}, ({dim},))", f"nn.flip({{v}}, dims=({dim},))"))
        call = flip.replace("{v}", call.replace("{v}", flip))
    if spec.exclusive:
        formula.apply(f"{call} - {{v}}", True)
    else:
        formula.apply(call, False)
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)


def _forms(spec: Spec) -> tuple:
    if not spec.lines.contiguous:
        return (thread_per_line, grid_lines)
    alone = (thread_per_row, pointer_per_row) if spec.lines.length <= layout.LONGEST_SUM else ()
    if spec.product or spec.exclusive or not spec.lines.blocks(TILES):
        return (*alone, chunked_block)
    return (*alone, chunked_block, warp_scan, tile_scan)


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    extents: Extents
    spec: Spec
    kernel: str

    def value(self, at: str) -> list[str]:
        """Statements that leave the element at flat index `at` in the running variable."""
        return chains.value(self.spec.prologue, f"{self.spec.main}[{at}]", self._operands(at), self.style.value)

    def element(self, at: str) -> tuple[list[str], str]:
        return chains.statements(self.spec.prologue, f"{self.spec.main}[{at}]", self._operands(at), self.style.value)

    def _operands(self, at: str) -> dict[str, str]:
        return {operand.name: f"{operand.name}[{at}]" for operand in self.spec.prologue.operands}

    def store(self, prefix: str, at: str) -> list[str]:
        """Statements that apply the epilogue to a prefix, which is left as it is, and write it."""
        name = "y" if "y" not in (*self.spec.arguments, self.style.value) else "z0"
        lines, last = chains.statements(self.spec.epilogue, prefix, {}, name)
        return [*lines, f"{self.style.out}[{at}] = {last};"]

    def advance(self, at: str, total: str = "total") -> list[str]:
        """Statements that take the element at `at` into the running total and write the prefix."""
        lines, last = self.element(at)
        operator = self.spec.operator
        if self.spec.exclusive:
            return [*self.value(at), *self.store(total, at), f"{total} {operator} {self.style.value};"]
        return [*lines, f"{total} {operator} {last};", *self.store(total, at)]

    def program(self, path: Walk, body: list[str], helpers: tuple[str, ...] = ()) -> str:
        wording, spec = self.style, self.spec
        pointers = (spec.main, *spec.prologue.pointers)
        parameters = (
            *wording.pointers(pointers),
            wording.pointer(wording.out, "float*"),
            *(f"int {name}" for name, _ in path.integers),
        )
        kernel = Kernel(self.kernel, parameters, (*path.intro, *body))
        values = tuple(value for _, value in path.integers)
        launch = Launch(self.kernel, path.grid, path.threads, (*pointers, wording.out, *values))
        out = f"{wording.out} = cp.empty({spec.main}.shape, cp.float32)"
        statements = [self.extents.statement, out, launch.line(), f"return {wording.out}"]
        return render(wording, [kernel], spec.arguments, statements, helpers)


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...]) -> Setting:
    taken = (
        *spec.arguments,
        "total",
        "part",
        "inner",
        "depth",
        "base",
        "sums",
        "first",
        "last",
        "t",
        "carry",
        "s",
        "size",
        "at",
        "sum",
        "start",
        "up",
        "left",
        "row",
        "j",
        "rows",
        "columns",
    )
    drawn = style.draw(rng, taken, blocks)
    # A prefix is wrong as soon as one index is: every form spells its indices alike, and little else varies.
    wording = dataclasses.replace(
        drawn, row="row", column="j", rows="rows", columns="columns", block_text=False, restrict=False
    )
    extents = layout.extents(rng, spec.lines, spec.main, (*spec.arguments, wording.out))
    return Setting(wording, extents, spec, scan_name(rng, spec.prologue, spec.name, spec.epilogue))


def _loop(spec: Spec, path: Walk, body: list[str]) -> list[str]:
    return path.backwards(body) if spec.reverse else path.loop(body)


def thread_per_row(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128, 256))
    path = walk.thread_per_row(setting.style, setting.extents)
    body = [f"float total = {spec.start};", *_loop(spec, path, [f"int at = {path.at};", *setting.advance("at")])]
    return Program(
        text=setting.program(path, body),
        form="thread",
        techniques=("one row per thread", "fusion"),
        design=f"One thread per row with a running {_word(spec)}{_order(spec)}, blocks of {setting.style.block}.",
        trait="runs each row serially in one thread, without barriers",
    )


def pointer_per_row(spec: Spec, rng: Random) -> Program:
    """As `thread_per_row` with pointers to the row, so that the index in the loop is the column alone."""
    setting = _setting(spec, rng, (32, 64, 128))
    wording = setting.style
    path = walk.thread_per_row(wording, setting.extents)
    names = (spec.main, *spec.prologue.pointers)
    moved = [f"{name} += {path.line} * {path.length};" for name in (*names, wording.out)]
    body = [*moved, f"float total = {spec.start};", *_loop(spec, path, setting.advance(path.position))]
    return Program(
        text=setting.program(path, body),
        form="pointer",
        techniques=("one row per thread", "pointer increments", "fusion"),
        design=f"One thread per row, pointers moved to the row{_order(spec)}, blocks of {wording.block}.",
        trait="keeps index arithmetic out of a serial loop over the row",
    )


def thread_per_line(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (64, 128, 256))
    path = walk.thread_per_line(setting.style, setting.extents)
    body = [f"float total = {spec.start};", *_loop(spec, path, ["int at = " + path.at + ";", *setting.advance("at")])]
    return Program(
        text=setting.program(path, body),
        form="line",
        techniques=("one line per thread", "coalesced access", "fusion"),
        design=f"One thread per strided line, coalesced{_order(spec)}, blocks of {setting.style.block}.",
        trait="gives each strided line to one thread",
    )


def grid_lines(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128, 256))
    path = walk.thread_per_line_2d(setting.style, setting.extents)
    body = [f"float total = {spec.start};", *_loop(spec, path, ["int at = " + path.at + ";", *setting.advance("at")])]
    return Program(
        text=setting.program(path, body),
        form="grid2d",
        techniques=("2-D grid", "coalesced access", "fusion"),
        design=f"A 2-D grid, blockIdx.y outer, one thread per line{_order(spec)}, blocks of {setting.style.block}.",
        trait="finds its line from a 2-D grid without divisions",
    )


def chunked_block(spec: Spec, rng: Random) -> Program:
    """A block per row: each thread sums a chunk, takes the sums before it, then writes its chunk."""
    setting = _setting(spec, rng, (32, 64))
    wording = setting.style
    path = walk.block_per_row(wording, setting.extents)
    j, n, threads = path.position, path.length, wording.block
    at = path.at if not spec.reverse else f"{path.line} * {n} + {n} - 1 - {j}"
    place = f"int at = {at};"
    head = f"for (int {j} = first; {j} < last; ++{j})"
    lines, last = setting.element("at")
    body = [
        f"__shared__ float sums[{threads}];",
        f"int t = threadIdx.x, size = ({n} + {threads - 1}) / {threads};",
        f"int first = t * size, last = min(first + size, {n});",
        f"float total = {spec.start};",
        *block(head, [place, *lines, f"total {spec.operator} {last};"]),
        "sums[t] = total;",
        "__syncthreads();",
        f"total = {spec.start};",
        f"for (int s = 0; s < t; ++s) total {spec.operator} sums[s];",
        *block(head, [place, *setting.advance("at")]),
    ]
    return Program(
        text=setting.program(path, body),
        form="chunks",
        techniques=("one block per row", "contiguous chunk per thread", "two passes", "shared memory"),
        design=f"One block of {threads} threads per row: chunk sums in shared memory, then each writes its chunk.",
        trait=f"splits a row into {threads} chunks and reads it twice",
    )


def warp_scan(spec: Spec, rng: Random) -> Program:
    """One warp per row walks it 32 elements at a time with a shuffle scan and a carry."""
    setting = _setting(spec, rng, (32,))
    wording = setting.style
    path = walk.warp_per_row(wording, setting.extents)
    j, n = path.position, path.length
    place = f"{n} - 1 - {j}" if spec.reverse else j
    body = [
        f"float carry = {spec.start};",
        *block(
            f"for (int start = 0; start < {n}; start += 32)",
            [
                f"int {j} = start + threadIdx.x;",
                f"int at = {path.line} * {n} + {place};",
                f"float sum = {spec.start};",
                *block(f"if ({j} < {n})", _sum_of(setting, "at")),
                *block(
                    "for (int s = 1; s < 32; s *= 2)",
                    ["float up = __shfl_up_sync(0xffffffff, sum, s);", "if (threadIdx.x >= s) sum += up;"],
                ),
                "sum += carry;",
                *_guarded(f"if ({j} < {n})", setting.store("sum", "at")),
                "carry = __shfl_sync(0xffffffff, sum, 31);",
            ],
        ),
    ]
    return Program(
        text=setting.program(path, body),
        form="warp",
        techniques=("one warp per row", "warp shuffles", "fusion"),
        design="One warp per row scans 32 elements at a time with shuffles and carries the last prefix on.",
        trait="scans 32 elements at a time with shuffles in one warp per row",
    )


def tile_scan(spec: Spec, rng: Random) -> Program:
    """One block per row walks it a tile at a time with a shared-memory scan and a carry."""
    setting = _setting(spec, rng, spec.lines.blocks(TILES))
    wording = setting.style
    path = walk.block_per_row(wording, setting.extents)
    j, n, threads = path.position, path.length, wording.block
    place = f"{n} - 1 - {j}" if spec.reverse else j
    body = [
        f"__shared__ float part[{threads}];",
        "int t = threadIdx.x;",
        f"float carry = {spec.start};",
        *block(
            f"for (int start = 0; start < {n}; start += {threads})",
            [
                f"int {j} = start + t;",
                f"int at = {path.line} * {n} + {place};",
                f"float sum = {spec.start};",
                *block(f"if ({j} < {n})", _sum_of(setting, "at")),
                "part[t] = sum;",
                "__syncthreads();",
                *block(
                    f"for (int s = 1; s < {threads}; s *= 2)",
                    [
                        "float left = t >= s ? part[t - s] : 0.0f;",
                        "__syncthreads();",
                        "part[t] += left;",
                        "__syncthreads();",
                    ],
                ),
                "sum = part[t] + carry;",
                *_guarded(f"if ({j} < {n})", setting.store("sum", "at")),
                f"carry += part[{threads - 1}];",
                "__syncthreads();",
            ],
        ),
    ]
    return Program(
        text=setting.program(path, body),
        form="tile",
        techniques=("one block per row", "shared-memory scan", "fusion"),
        design=f"One block per row scans tiles of {threads} in shared memory and carries the last prefix on.",
        trait=f"pays two barriers for every doubling step of its {threads}-wide tiles",
    )


def _sum_of(setting: Setting, at: str) -> list[str]:
    lines, last = setting.element(at)
    return [*lines, f"sum = {last};"]


def _guarded(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {lines[0]}"] if len(lines) == 1 else block(head, lines)


def _word(spec: Spec) -> str:
    return "product" if spec.product else "sum"


def _order(spec: Spec) -> str:
    return (", from the end" if spec.reverse else "") + (", exclusive" if spec.exclusive else "")
