"""Programs for matrix products: which outputs a thread computes, and where operands are kept."""

import dataclasses
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.naming import product_name
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Spec:
    """out[n, m] = epilogue(sum over k of left[n, k] * right[k, m]); operands may be transposed, or in batches."""

    left: str
    right: str
    left_transposed: bool
    right_transposed: bool
    batched: bool
    stacked: bool  # left is [batch, rows, k]: the rows of all its matrices meet one right operand
    linear: bool  # written as nn.linear, the first operand of the epilogue being its bias
    epilogue: Chain
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        letters = ("t" if self.left_transposed else "n") + ("t" if self.right_transposed else "n")
        return ("bmm_" if self.batched else "stack_" if self.stacked else "matmul_") + letters

    @property
    def pointers(self) -> tuple[str, ...]:
        return (self.left, self.right, *self.epilogue.pointers)


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    spec: Spec
    kernel: str

    def left_at(self, row: str, k: str) -> str:
        if self.spec.left_transposed:
            return f"{self.spec.left}[{_times(k, 'n')} + {row}]"
        return f"{self.spec.left}[{_times(row, 'k')} + {k}]"

    def right_at(self, k: str, column: str) -> str:
        if self.spec.right_transposed:
            return f"{self.spec.right}[{_times(column, 'k')} + {k}]"
        return f"{self.spec.right}[{_times(k, 'm')} + {column}]"

    def store(self, total: str, row: str, column: str) -> list[str]:
        """Statements that apply the epilogue to `total` and write it."""
        at = f"{_times(row, 'm')} + {column}"
        texts = {"full": at, "row": column, "column": row, "scalar": "0"}
        operands = {o.name: f"{o.name}[{texts[o.place]}]" for o in self.spec.epilogue.operands}
        lines, last = chains.in_place(self.spec.epilogue, total, operands)
        return [*lines, f"{self.style.out}[{at}] = {last};"]

    def program(self, body: list[str], grid: str, threads: str) -> str:
        wording, spec = self.style, self.spec
        parameters = (
            *wording.pointers(spec.pointers),
            wording.pointer(wording.out, "float*"),
            "int n",
            "int m",
            "int k",
        )
        if spec.batched:
            moves = [f"{spec.left} += blockIdx.z * n * k;", f"{spec.right} += blockIdx.z * k * m;"]
            moves += [f"{o.name} += blockIdx.z * n * m;" for o in spec.epilogue.operands if o.place == "full"]
            body = [*moves, f"{wording.out} += blockIdx.z * n * m;", *body]
            grid = f"{grid}, batch"
        kernel = Kernel(self.kernel, parameters, tuple(body))
        launch = Launch(self.kernel, grid, threads, (*spec.pointers, wording.out, "n", "m", "k"))
        shape = "(batch, n, m)" if spec.batched else "(batch, rows, m)" if spec.stacked else "(n, m)"
        statements = [
            *self.extents(),
            f"{wording.out} = cp.empty({shape}, cp.float32)",
            launch.line(),
            f"return {wording.out}",
        ]
        return render(wording, [kernel], spec.arguments, statements)

    def extents(self) -> list[str]:
        spec = self.spec
        if spec.batched:
            return [f"batch, n, k = {spec.left}.shape", f"m = {spec.right}.shape[2]"]
        if spec.stacked:
            columns = f"m = {spec.right}.shape[{0 if spec.right_transposed else 1}]"
            return [f"batch, rows, k = {spec.left}.shape", "n = batch * rows", columns]
        left = "k, n" if spec.left_transposed else "n, k"
        return [f"{left} = {spec.left}.shape", f"m = {spec.right}.shape[{0 if spec.right_transposed else 1}]"]


def _times(text: str, factor: str) -> str:
    return f"({text}) * {factor}" if " + " in text and not text.startswith("min(") else f"{text} * {factor}"


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...] = (64, 128, 256)) -> Setting:
    taken = (*spec.arguments, "n", "m", "k", "i", "sum", "row", "rows", "column", "batch")
    wording = dataclasses.replace(style.draw(rng, taken, blocks), row="row", column=rng.choice(("column", "col")))
    return Setting(wording, spec, product_name(rng, spec.name, spec.epilogue))


def _cover(extent: str, per_block: int) -> str:
    return f"({extent} + {per_block - 1}) // {per_block}"


def one_per_thread(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    row, column = "row", setting.style.column
    width, height = rng.choice(((16, 16), (16, 16), (32, 8), (32, 4), (8, 8)))
    body = [
        f"int {column} = blockIdx.x * {width} + threadIdx.x;",
        f"int {row} = blockIdx.y * {height} + threadIdx.y;",
        *block(
            f"if ({row} < n && {column} < m)",
            [
                "float sum = 0.0f;",
                *block(
                    "for (int i = 0; i < k; ++i)",
                    [f"sum += {setting.left_at(row, 'i')} * {setting.right_at('i', column)};"],
                ),
                *setting.store("sum", row, column),
            ],
        ),
    ]
    return Program(
        text=setting.program(body, f"{_cover('m', width)}, {_cover('n', height)}", f"{width}, {height}"),
        form="one",
        techniques=("one output per thread", *_fused(spec)),
        design=f"One thread per output in {width} x {height} blocks{_epilogue(spec)}.",
        trait="computes one output per thread, two loads for every multiply-add",
    )


def flat(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    wording, row, column = setting.style, "row", setting.style.column
    body = [
        f"int id = {wording.thread};",
        "if (id >= n * m) return;",
        f"int {row} = id / m, {column} = id % m;",
        "float sum = 0.0f;",
        *block(
            "for (int i = 0; i < k; ++i)", [f"sum += {setting.left_at(row, 'i')} * {setting.right_at('i', column)};"]
        ),
        *setting.store("sum", row, column),
    ]
    return Program(
        text=setting.program(body, wording.grid("n * m"), str(wording.block)),
        form="flat",
        techniques=("one output per thread", *_fused(spec)),
        design=f"One thread per output on a flat grid, blocks of {wording.block}{_epilogue(spec)}.",
        trait="computes one output per thread on a flat grid",
    )


def unrolled(spec: Spec, rng: Random) -> Program:
    """Two partial sums break the chain of dependent additions."""
    setting = _setting(spec, rng)
    row, column = "row", setting.style.column
    width, height = rng.choice(((16, 16), (32, 4), (32, 8)))
    body = [
        f"int {column} = blockIdx.x * {width} + threadIdx.x;",
        f"int {row} = blockIdx.y * {height} + threadIdx.y;",
        f"if ({row} >= n || {column} >= m) return;",
        "float sum = 0.0f, odd = 0.0f;",
        "int i = 0;",
        *block(
            "for (; i + 1 < k; i += 2)",
            [
                f"sum += {setting.left_at(row, 'i')} * {setting.right_at('i', column)};",
                f"odd += {setting.left_at(row, 'i + 1')} * {setting.right_at('i + 1', column)};",
            ],
        ),
        f"if (i < k) sum += {setting.left_at(row, 'i')} * {setting.right_at('i', column)};",
        "sum += odd;",
        *setting.store("sum", row, column),
    ]
    return Program(
        text=setting.program(body, f"{_cover('m', width)}, {_cover('n', height)}", f"{width}, {height}"),
        form="unrolled",
        techniques=("one output per thread", "several accumulators", "loop unrolling", *_fused(spec)),
        design=f"One thread per output, inner loop unrolled by two, {width} x {height} blocks{_epilogue(spec)}.",
        trait="unrolls the inner loop into two independent sums",
    )


def columns_per_thread(spec: Spec, rng: Random) -> Program:
    """Several neighbouring columns of one row per thread: the element of the left matrix is loaded once for all."""
    setting = _setting(spec, rng, (32, 64))
    wording, row, column = setting.style, "row", "first"
    items = rng.choice((4, 4, 8))
    body = [
        f"int {column} = ({wording.thread}) * {items};",
        f"int {row} = blockIdx.y;",
        f"float sum[{items}] = {{}};",
        *block(
            "for (int i = 0; i < k; ++i)",
            [
                f"float a0 = {setting.left_at(row, 'i')};",
                f"for (int c = 0; c < {items}; ++c) sum[c] += a0 * {setting.right_at('i', 'min(first + c, m - 1)')};",
            ],
        ),
        *block(f"for (int c = 0; c < {items} && first + c < m; ++c)", setting.store("sum[c]", row, "first + c")),
    ]
    return Program(
        text=setting.program(body, f"{_cover('m', wording.block * items)}, n", str(wording.block)),
        form="columns",
        techniques=("register tiling", "several items per thread", *_fused(spec)),
        design=f"{items} neighbouring columns per thread in registers share each left element{_epilogue(spec)}.",
        trait=f"reuses each left element for {items} columns held in registers",
    )


def rows_per_thread(spec: Spec, rng: Random) -> Program:
    """Several rows of one column per thread: the element of the right matrix is loaded once for all."""
    setting = _setting(spec, rng, (32, 64, 128))
    wording, column = setting.style, setting.style.column
    items = rng.choice((2, 4, 4, 8))
    body = [
        f"int {column} = {wording.thread};",
        f"int first = blockIdx.y * {items};",
        f"if ({column} >= m) return;",
        f"float sum[{items}] = {{}};",
        *block(
            "for (int i = 0; i < k; ++i)",
            [
                f"float b0 = {setting.right_at('i', column)};",
                f"for (int r = 0; r < {items}; ++r) sum[r] += {setting.left_at('min(first + r, n - 1)', 'i')} * b0;",
            ],
        ),
        *block(f"for (int r = 0; r < {items} && first + r < n; ++r)", setting.store("sum[r]", "first + r", column)),
    ]
    return Program(
        text=setting.program(body, f"{_cover('m', wording.block)}, {_cover('n', items)}", str(wording.block)),
        form="rows",
        techniques=("register tiling", "several items per thread", "coalesced access", *_fused(spec)),
        design=f"{items} rows of a column per thread in registers share each right element{_epilogue(spec)}.",
        trait=f"reuses each right element for {items} rows held in registers",
    )


def square_per_thread(spec: Spec, rng: Random) -> Program:
    """A 2 x 2 tile of outputs per thread: four multiply-adds for four loads."""
    setting = _setting(spec, rng)
    width, height = rng.choice(((16, 16), (16, 8), (8, 8)))
    body = [
        f"int x0 = (blockIdx.x * {width} + threadIdx.x) * 2, x1 = min(x0 + 1, m - 1);",
        f"int y0 = (blockIdx.y * {height} + threadIdx.y) * 2, y1 = min(y0 + 1, n - 1);",
        "if (x0 >= m || y0 >= n) return;",
        "float sum[2][2] = {};",
        *block(
            "for (int i = 0; i < k; ++i)",
            [
                f"float a0 = {setting.left_at('y0', 'i')}, a1 = {setting.left_at('y1', 'i')};",
                f"float b0 = {setting.right_at('i', 'x0')}, b1 = {setting.right_at('i', 'x1')};",
                "sum[0][0] += a0 * b0;",
                "sum[0][1] += a0 * b1;",
                "sum[1][0] += a1 * b0;",
                "sum[1][1] += a1 * b1;",
            ],
        ),
        *block(
            "for (int r = y0; r <= y1; ++r)",
            block("for (int c = x0; c <= x1; ++c)", setting.store("sum[r - y0][c - x0]", "r", "c")),
        ),
    ]
    return Program(
        text=setting.program(body, f"{_cover('m', 2 * width)}, {_cover('n', 2 * height)}", f"{width}, {height}"),
        form="square",
        techniques=("register tiling", "several items per thread", *_fused(spec)),
        design=f"Each thread computes a 2 x 2 tile in registers, {width} x {height} blocks{_epilogue(spec)}.",
        trait="computes a 2 x 2 tile per thread, one load per multiply-add",
    )


def shared_tiles(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    tile = rng.choice((8, 16, 16))
    row, column = "row", setting.style.column
    left, right = ("left", "right") if not {"left", "right"} & set(spec.arguments) else ("ta", "tb")
    body = [
        f"__shared__ float {left}[{tile}][{tile}], {right}[{tile}][{tile}];",
        "int x0 = threadIdx.x, y0 = threadIdx.y;",
        f"int {column} = blockIdx.x * {tile} + x0, {row} = blockIdx.y * {tile} + y0;",
        "float sum = 0.0f;",
        *block(
            f"for (int i = 0; i < k; i += {tile})",
            [
                f"{left}[y0][x0] = {row} < n && i + x0 < k ? {setting.left_at(row, 'i + x0')} : 0.0f;",
                f"{right}[y0][x0] = {column} < m && i + y0 < k ? {setting.right_at('i + y0', column)} : 0.0f;",
                "__syncthreads();",
                f"for (int j = 0; j < {tile}; ++j) sum += {left}[y0][j] * {right}[j][x0];",
                "__syncthreads();",
            ],
        ),
        *_guarded(f"if ({row} < n && {column} < m)", setting.store("sum", row, column)),
    ]
    return Program(
        text=setting.program(body, f"{_cover('m', tile)}, {_cover('n', tile)}", f"{tile}, {tile}"),
        form="tiles",
        techniques=("shared-memory tiling", *_fused(spec)),
        design=f"{tile} x {tile} tiles of both operands in shared memory, zero-padded at the edges{_epilogue(spec)}.",
        trait=f"stages {tile} x {tile} tiles in shared memory with two barriers per tile",
    )


def _guarded(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {lines[0]}"] if len(lines) == 1 else block(head, lines)


def _fused(spec: Spec) -> tuple[str, ...]:
    return ("fused epilogue",) if spec.epilogue.steps else ()


def _epilogue(spec: Spec) -> str:
    return "; later steps are fused into the store" if spec.epilogue.steps else ""


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """The forms that suit a task, the plain one first."""
    if spec.batched:
        return (one_per_thread, columns_per_thread, rows_per_thread)
    return (one_per_thread, flat, columns_per_thread, rows_per_thread, shared_tiles, square_per_thread, unrolled)
