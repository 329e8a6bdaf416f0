"""Matrix products whose rows are folded at once: the product need not be stored, nor, if all is linear, formed."""

import dataclasses
from functools import partial
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import fold as folds
from cudal1_jax.corpus import pointwise, style, workload
from cudal1_jax.corpus.chain import Chain, Formula
from cudal1_jax.corpus.fold import Fold
from cudal1_jax.corpus.pointwise import Step
from cudal1_jax.corpus.product import draw_extents
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.style import Style
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks.task import Array

FAMILY = "matmul"
LINEAR = [kind for kind in pointwise.UNARY if kind.name in ("mul_c", "rmul_c", "div_c", "neg")]
NAMES = (("x", "weight"), ("x", "weight"), ("x", "w"), ("A", "B"), ("a", "b"))


@dataclasses.dataclass(frozen=True)
class Spec:
    """fold over j of middle(left[n, :] . right[:, j]), then epilogue; `right` is stored [m, k] or [k, m]."""

    left: str
    right: str
    transposed: bool  # right is stored [m, k]
    middle: Chain
    fold: Fold
    epilogue: Chain
    keepdim: bool

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.left, self.right)

    @property
    def collapses(self) -> bool:
        linear = {kind.name for kind in LINEAR}
        return self.fold.name in ("sum", "mean") and all(step.kind.name in linear for step in self.middle.steps)


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    n, m, k = draw_extents(rng, (elements[0] * 6, elements[1] * 6))
    left, right = rng.choice(NAMES)
    transposed = rng.random() < 0.75
    linear = rng.random() < 0.6
    fold = folds.BY_NAME[
        rng.choice(("sum", "sum", "mean") if linear else ("sum", "mean", "max", "min", "l1", "square_sum"))
    ]
    middle = _linear(rng, rng.choice((0, 0, 1, 1, 2))) if linear else chains.draw(rng, rng.choice((0, 1, 1, 2)))
    epilogue = chains.draw(rng, rng.choice((0, 1, 1, 2)))
    keepdim = rng.random() < 0.6
    init = rng.choice(("uniform(0,1)", "normal(0,1)"))
    shape = (m, k) if transposed else (k, m)
    arrays = (Array(left, (n, k), init=init), Array(right, shape, init=rng.choice((init, "normal(0,1)"))))
    spec = Spec(left, right, transposed, middle, fold, epilogue, keepdim)
    forms = [row_per_thread, warp_per_row, block_per_row]
    if spec.collapses:
        forms += [collapsed, collapsed, collapsed_warp]
    return Workload(
        task=workload.task(
            FAMILY, _source(rng, spec), arrays, workload.cases_after_sum(len(middle.steps) + len(epilogue.steps))
        ),
        canonical=(f"matmul_{'nt' if transposed else 'nn'}", *middle.names, f"{fold.name}@2d1", *epilogue.names),
        bottleneck=rng.choice(COLLAPSES if spec.collapses else FOLDS),
        writers=tuple(partial(form, spec) for form in forms),
    )


COLLAPSES = (
    "Everything up to the sum is linear, so the sum can be taken before the product: n * k work instead of n * m * k.",
    "The sum of a row of the product is a dot product with the summed weights; the full product is never needed.",
)
FOLDS = (
    "The product is folded row by row at once, so it never needs to be stored; the dot products bound the time.",
    "n * m dot products of length k are reduced to n numbers: arithmetic and reuse of operands decide.",
)


def _linear(rng: Random, length: int) -> Chain:
    steps: list[Step] = []
    while len(steps) < length:
        step = pointwise.with_constants(rng, pointwise.choose(rng, LINEAR))
        if not steps or steps[-1].kind.name != step.kind.name:
            steps.append(step)
    return Chain(tuple(steps))


def _source(rng: Random, spec: Spec) -> str:
    formula = Formula.drawn(rng, spec.left, spec.arguments)
    right = f"{spec.right}.T" if spec.transposed else spec.right
    if spec.transposed and rng.random() < 0.25:
        formula.open = f"nn.linear({spec.left}, {spec.right})"
    elif rng.random() < 0.25:
        formula.open, formula.infix = f"{spec.left} @ {right}", True
    else:
        formula.open = f"nn.matmul({spec.left}, {right})"
    formula.steps(spec.middle)
    keepdim = ", keepdim=True" if spec.keepdim else ""
    dim = rng.choice(("dim=1", "dim=1", "dim=-1"))
    formula.apply(spec.fold.nn.replace("{dim}", dim).replace("{keepdim}", keepdim), spec.fold.infix)
    formula.steps(spec.epilogue)
    return formula.source(spec.arguments)


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    spec: Spec

    def dot(self) -> list[str]:
        """Statements that leave left[row, :] . right[:, j] in `dot`."""
        spec = self.spec
        right = f"{spec.right}[j * k + i]" if spec.transposed else f"{spec.right}[i * m + j]"
        return ["float dot = 0.0f;", f"for (int i = 0; i < k; ++i) dot += {spec.left}[row * k + i] * {right};"]

    def update(self) -> list[str]:
        """Statements that fold the product's element (row, j) into the accumulator."""
        spec = self.spec
        lines, last = chains.in_place(spec.middle, "dot", {})
        if spec.fold.uses_value_twice and last != "dot":
            lines, last = [*lines, f"dot = {last};"], "dot"
        return [*self.dot(), *lines, spec.fold.update(spec.fold.variable, last)]

    def store(self, accumulator: str) -> list[str]:
        spec = self.spec
        finished = spec.fold.finished(accumulator, "m")
        if not spec.epilogue.steps:
            return [f"{self.style.out}[row] = {finished};"]
        lines, last = chains.in_place(spec.epilogue, accumulator, {})
        head = [] if finished == accumulator else [f"{accumulator} = {finished};"]
        return [*head, *lines, f"{self.style.out}[row] = {last};"]

    def head(self) -> list[str]:
        spec = self.spec
        shape = "(n, 1)" if spec.keepdim else "(n,)"
        return [
            f"n, k = {spec.left}.shape",
            f"m = {spec.right}.shape[{0 if spec.transposed else 1}]",
            f"{self.style.out} = cp.empty({shape}, cp.float32)",
        ]

    def single(self, name: str, body: list[str], integers: tuple[str, ...], grid: str, threads: str) -> str:
        """A program of one kernel."""
        spec, wording = self.spec, self.style
        parameters = (
            *wording.pointers(spec.arguments),
            wording.pointer(wording.out, "float*"),
            *(f"int {integer}" for integer in integers),
        )
        launch = Launch(name, grid, threads, (*spec.arguments, wording.out, *integers)).line()
        statements = [*self.head(), launch, f"return {wording.out}"]
        return render(wording, [Kernel(name, parameters, tuple(body))], spec.arguments, statements)


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...]) -> Setting:
    taken = (*spec.arguments, "n", "m", "k", "i", "j", "row", "dot", "total", "best", "sums", "t", "s", "part")
    return Setting(style.draw(rng, taken, blocks), spec)


def _name(rng: Random, spec: Spec) -> str:
    return rng.choice((f"matmul_{spec.fold.name}", f"product_{spec.fold.name}", "fused", "row_products"))


def row_per_thread(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128))
    wording, acc = setting.style, spec.fold.variable
    body = [
        f"int row = {wording.thread};",
        "if (row >= n) return;",
        f"float {acc} = {spec.fold.start};",
        *block("for (int j = 0; j < m; ++j)", setting.update()),
        *setting.store(acc),
    ]
    return Program(
        text=setting.single(_name(rng, spec), body, ("n", "m", "k"), wording.grid("n"), str(wording.block)),
        form="row",
        techniques=("one row per thread", "fusion"),
        design=f"One thread per row folds its dot products in a register as they come, blocks of {wording.block}.",
        trait="forms every dot product, though it stores none",
    )


def warp_per_row(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32,))
    acc = spec.fold.variable
    shuffle = f"__shfl_down_sync(0xffffffff, {acc}, s)"
    store = setting.store(acc)
    body = [
        "int row = blockIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block("for (int j = threadIdx.x; j < m; j += 32)", setting.update()),
        f"for (int s = 16; s > 0; s /= 2) {spec.fold.merged(acc, shuffle)}",
        *([f"if (threadIdx.x == 0) {store[0]}"] if len(store) == 1 else block("if (threadIdx.x == 0)", store)),
    ]
    return Program(
        text=setting.single(_name(rng, spec), body, ("m", "k"), "n", "32"),
        form="warp",
        techniques=("one warp per row", "warp shuffles", "fusion"),
        design="One warp per row; each lane takes every 32nd dot product and shuffles fold them.",
        trait="gives the dot products of a row to the lanes of one warp",
    )


def block_per_row(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (64, 128))
    acc, threads = spec.fold.variable, setting.style.block
    store = setting.store("part[0]")
    body = [
        f"__shared__ float part[{threads}];",
        "int row = blockIdx.x, t = threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(f"for (int j = t; j < m; j += {threads})", setting.update()),
        f"part[t] = {acc};",
        "__syncthreads();",
        *block(
            f"for (int s = {threads // 2}; s > 0; s /= 2)",
            [f"if (t < s) {spec.fold.merged('part[t]', 'part[t + s]')}", "__syncthreads();"],
        ),
        *([f"if (t == 0) {store[0]}"] if len(store) == 1 else block("if (t == 0)", store)),
    ]
    return Program(
        text=setting.single(_name(rng, spec), body, ("m", "k"), "n", str(threads)),
        form="block_tree",
        techniques=("one block per row", "shared-memory reduction", "fusion"),
        design=f"One block of {threads} threads per row, a dot product per thread, a shared-memory tree to fold them.",
        trait="forms every dot product and pays barriers for each row",
    )


def _sums_kernel(setting: Setting) -> tuple[Kernel, list[str]]:
    spec, wording = setting.spec, setting.style
    read = f"{spec.right}[j * k + i]" if spec.transposed else f"{spec.right}[i * m + j]"
    body = (
        f"int i = {wording.thread};",
        "if (i >= k) return;",
        "float total = 0.0f;",
        f"for (int j = 0; j < m; ++j) total += {read};",
        "sums[i] = total;",
    )
    parameters = (*wording.pointers((spec.right,)), wording.pointer("sums", "float*"), "int m", "int k")
    launch = Launch("weight_sums", wording.grid("k"), str(wording.block), (spec.right, "sums", "m", "k")).line()
    return Kernel("weight_sums", parameters, body), ["sums = cp.empty((k,), cp.float32)", launch]


def _finish(setting: Setting) -> list[str]:
    """Statements that turn the dot product with the sums into the result and write it."""
    spec = setting.spec
    scale, last = chains.in_place(spec.middle, "total", {})
    head = [*scale, f"total = {last};"] if spec.middle.steps else []
    return [*head, *setting.store("total")]


def _two_kernels(setting: Setting, second: Kernel, grid: str, threads: str, integers: tuple[str, ...]) -> str:
    spec, wording = setting.spec, setting.style
    first, statements = _sums_kernel(setting)
    launch = Launch(second.name, grid, threads, (spec.left, "sums", wording.out, *integers)).line()
    body = [*setting.head(), *statements, launch, f"return {wording.out}"]
    return render(wording, [first, second], spec.arguments, body)


def collapsed(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128))
    wording = setting.style
    body = (
        f"int row = {wording.thread};",
        "if (row >= n) return;",
        "float total = 0.0f;",
        f"for (int i = 0; i < k; ++i) total += {spec.left}[row * k + i] * sums[i];",
        *_finish(setting),
    )
    integers = ("n", "m", "k") if spec.fold.name == "mean" else ("n", "k")
    kernel = Kernel("row_dots", _dots(setting, integers), body)
    return Program(
        text=_two_kernels(setting, kernel, wording.grid("n"), str(wording.block), integers),
        form="collapsed",
        techniques=("algebraic simplification", "one row per thread"),
        design=f"Sum {spec.right} over the product's columns first, then one dot product per row with the sums.",
        trait="sums the weights first, so that each row needs a single dot product",
    )


def collapsed_warp(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (64, 128))
    finish = _finish(setting)
    body = (
        "int row = blockIdx.x;",
        "float total = 0.0f;",
        f"for (int i = threadIdx.x; i < k; i += 32) total += {spec.left}[row * k + i] * sums[i];",
        "for (int s = 16; s > 0; s /= 2) total += __shfl_down_sync(0xffffffff, total, s);",
        *([f"if (threadIdx.x == 0) {finish[0]}"] if len(finish) == 1 else block("if (threadIdx.x == 0)", finish)),
    )
    integers = ("m", "k") if spec.fold.name == "mean" else ("k",)
    kernel = Kernel("row_dots", _dots(setting, integers), body)
    return Program(
        text=_two_kernels(setting, kernel, "n", "32", integers),
        form="collapsed_warp",
        techniques=("algebraic simplification", "one warp per row", "warp shuffles"),
        design=f"Sum {spec.right} over the product's columns first, then one warp per row dots with the sums.",
        trait="sums the weights first and gives each row's single dot product to a warp",
    )


def _dots(setting: Setting, integers: tuple[str, ...]) -> tuple[str, ...]:
    wording = setting.style
    pointers = wording.pointers((setting.spec.left, "sums"))
    return (*pointers, wording.pointer(wording.out, "float*"), *(f"int {integer}" for integer in integers))
