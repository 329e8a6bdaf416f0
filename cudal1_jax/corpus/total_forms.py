"""Programs that reduce everything to one number: how the reads are spread, and how partial results meet."""

import dataclasses
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.fold import SUM, Fold
from cudal1_jax.corpus.naming import total_name
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Spec:
    """A fold of every element of `main` after `chain`, then `epilogue` on the one result."""

    name: str
    chain: Chain
    fold: Fold
    epilogue: Chain
    main: str
    arguments: tuple[str, ...]
    elements: int

    def enough(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """Those numbers of threads that leave few enough elements for each to add up."""
        return tuple(count for count in counts if self.elements <= count * layout.LONGEST_SUM) or counts[-1:]

    @property
    def pointers(self) -> tuple[str, ...]:
        return (self.main, *self.chain.pointers)


@dataclasses.dataclass(frozen=True)
class Setting:
    style: Style
    spec: Spec
    kernel: str

    def update(self, accumulator: str, at: str) -> list[str]:
        """Statements that fold element `at` in."""
        operands = {name: f"{name}[{at}]" for name in self.spec.chain.pointers}
        load = f"{self.spec.main}[{at}]"
        if self.spec.fold.uses_value_twice:
            lines = chains.value(self.spec.chain, load, operands, self.style.value)
            return [*lines, self.spec.fold.update(accumulator, self.style.value)]
        lines, last = chains.statements(self.spec.chain, load, operands, self.style.value)
        return [*lines, self.spec.fold.update(accumulator, last)]

    def store(self, accumulator: str, count: str) -> list[str]:
        finished = self.spec.fold.finished(accumulator, count)
        lines, last = chains.in_place(self.spec.epilogue, accumulator, {})
        if not self.spec.epilogue.steps:
            return [f"{self.style.out}[0] = {finished};"]
        head = [] if finished == accumulator else [f"{accumulator} = {finished};"]
        return [*head, *lines, f"{self.style.out}[0] = {last};"]

    def tree(self, part: str, threads: int) -> list[str]:
        merge = self.spec.fold.merged(f"{part}[t]", f"{part}[t + s]")
        return block(f"for (int s = {threads // 2}; s > 0; s /= 2)", [f"if (t < s) {merge}", "__syncthreads();"])

    def parameters(self, pointers: tuple[str, ...], target: str, integers: tuple[str, ...]) -> tuple[str, ...]:
        numbers = tuple(f"int {name}" for name in integers)
        return (*self.style.pointers(pointers), self.style.pointer(target, "float*"), *numbers)


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...]) -> Setting:
    taken = (*spec.arguments, "total", "best", "part", "partial", "t", "s", "blocks", "first", "last", "size")
    return Setting(style.draw(rng, taken, blocks), spec, total_name(rng, spec.name, spec.fold.name))


def _guard(lines: list[str], test: str) -> list[str]:
    return [f"if ({test}) {lines[0]}"] if len(lines) == 1 else block(f"if ({test})", lines)


def single_block(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, spec.enough((64, 128, 256, 256, 512, 1024)))
    wording, acc = setting.style, spec.fold.variable
    i, n, threads = wording.index, wording.count, wording.block
    body = [
        f"__shared__ float part[{threads}];",
        "int t = threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(f"for (int {i} = t; {i} < {n}; {i} += {threads})", setting.update(acc, i)),
        f"part[t] = {acc};",
        "__syncthreads();",
        *setting.tree("part", threads),
        *_guard(setting.store("part[0]", n), "t == 0"),
    ]
    kernel = Kernel(setting.kernel, setting.parameters(spec.pointers, wording.out, (n,)), tuple(body))
    launch = Launch(setting.kernel, "1", str(threads), (*spec.pointers, wording.out, f"{spec.main}.size")).line()
    statements = [f"{wording.out} = cp.empty((), cp.float32)", launch, f"return {wording.out}"]
    return Program(
        text=render(wording, [kernel], spec.arguments, statements),
        form="single_block",
        techniques=("one kernel", "shared-memory reduction", *_fused(spec)),
        design=f"One block of {threads} threads strides over all elements; a shared-memory tree combines.",
        trait=f"does everything in one block of {threads} threads",
    )


def single_warp_tree(spec: Spec, rng: Random) -> Program:
    """One warp: lanes stride over everything and combine with shuffles."""
    setting = _setting(spec, rng, (32,))
    wording, acc = setting.style, spec.fold.variable
    i, n = wording.index, wording.count
    shuffle = f"__shfl_down_sync(0xffffffff, {acc}, s)"
    body = [
        f"float {acc} = {spec.fold.start};",
        *block(f"for (int {i} = threadIdx.x; {i} < {n}; {i} += 32)", setting.update(acc, i)),
        f"for (int s = 16; s > 0; s /= 2) {spec.fold.merged(acc, shuffle)}",
        *_guard(setting.store(acc, n), "threadIdx.x == 0"),
    ]
    kernel = Kernel(setting.kernel, setting.parameters(spec.pointers, wording.out, (n,)), tuple(body))
    launch = Launch(setting.kernel, "1", "32", (*spec.pointers, wording.out, f"{spec.main}.size")).line()
    statements = [f"{wording.out} = cp.empty((), cp.float32)", launch, f"return {wording.out}"]
    return Program(
        text=render(wording, [kernel], spec.arguments, statements),
        form="single_warp",
        techniques=("one kernel", "warp shuffles", *_fused(spec)),
        design="One warp strides over all elements and combines with shuffles.",
        trait="leaves everything to one warp that combines with shuffles",
    )


def two_stages(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (64, 128, 256))
    wording, acc = setting.style, spec.fold.variable
    i, n, threads = wording.index, wording.count, wording.block
    blocks = rng.choice((16, 32, 64, 128))
    head = f"for (int {i} = blockIdx.x * {threads} + t; {i} < {n}; {i} += gridDim.x * {threads})"
    first = [
        f"__shared__ float part[{threads}];",
        "int t = threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(head, setting.update(acc, i)),
        f"part[t] = {acc};",
        "__syncthreads();",
        *setting.tree("part", threads),
        "if (t == 0) partial[blockIdx.x] = part[0];",
    ]
    return Program(
        text=_with_finish(setting, first, blocks, str(blocks), str(threads)),
        form="two_stages",
        techniques=("two-stage reduction", "shared-memory reduction", "grid-stride loop", *_fused(spec)),
        design=f"Two kernels: {blocks} blocks of {threads} threads leave partial results, a second one combines.",
        trait=f"spreads the reads over {blocks} blocks and combines in a second kernel",
    )


def atomic_blocks(spec: Spec, rng: Random) -> Program:
    """As `two_stages`, the blocks' results added up by one atomic each instead of a second kernel."""
    setting = _setting(spec, rng, (64, 128, 256, 256))
    wording, acc = setting.style, spec.fold.variable
    i, n, threads = wording.index, wording.count, wording.block
    blocks = rng.choice((32, 64, 128, 256))
    head = f"for (long long {i} = blockIdx.x * {threads} + t; {i} < {n}; {i} += gridDim.x * {threads})"
    body = [
        f"__shared__ float part[{threads}];",
        "int t = threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *block(head, setting.update(acc, i)),
        f"part[t] = {acc};",
        "__syncthreads();",
        *setting.tree("part", threads),
        f"if (t == 0) atomicAdd({wording.out}, {spec.fold.finished('part[0]', n)});",
    ]
    parameters = (*setting.parameters(spec.pointers, wording.out, ()), f"long long {n}")
    launch = Launch(
        setting.kernel, str(blocks), str(threads), (*spec.pointers, wording.out, f"{spec.main}.size")
    ).line()
    statements = [f"{wording.out} = cp.zeros((), cp.float32)", launch, f"return {wording.out}"]
    return Program(
        text=render(wording, [Kernel(setting.kernel, parameters, tuple(body))], spec.arguments, statements),
        form="atomic",
        techniques=("atomics", "shared-memory reduction", "grid-stride loop", *_fused(spec)),
        design=f"{blocks} blocks of {threads} threads stride over all elements; each adds its result with one atomic.",
        trait=f"spreads the reads over {blocks} blocks that add their results with atomics",
    )


def thread_partials(spec: Spec, rng: Random) -> Program:
    """Each thread folds a contiguous chunk; a second kernel combines. No barriers at all."""
    setting = _setting(spec, rng, (32, 64))
    wording, acc = setting.style, spec.fold.variable
    i, n, threads = wording.index, wording.count, wording.block
    blocks = rng.choice(spec.enough(tuple(threads * count for count in (4, 8, 16)))) // threads
    parts = blocks * threads
    first = [
        f"int t = {wording.thread};",
        f"int size = ({n} + {parts - 1}) / {parts};",
        f"float {acc} = {spec.fold.start};",
        *block(f"for (int {i} = t * size; {i} < min(t * size + size, {n}); ++{i})", setting.update(acc, i)),
        f"partial[t] = {acc};",
    ]
    return Program(
        text=_with_finish(setting, first, parts, str(blocks), str(threads)),
        form="thread_partials",
        techniques=("two-stage reduction", "contiguous chunk per thread", *_fused(spec)),
        design=f"{parts} threads fold a contiguous chunk each; a second kernel combines.",
        trait=f"folds {parts} contiguous chunks without barriers, then combines in a second kernel",
    )


def _with_finish(setting: Setting, first: list[str], parts: int, blocks: str, threads: str) -> str:
    """The first kernel leaves `parts` partial results; one thread of a second one combines them."""
    wording, spec, acc = setting.style, setting.spec, setting.spec.fold.variable
    n = wording.count
    second = [
        f"float {acc} = {spec.fold.start};",
        f"for (int s = 0; s < {parts}; ++s) {spec.fold.merged(acc, 'partial[s]')}",
        *setting.store(acc, n),
    ]
    finish = "finish" if setting.kernel != "finish" else "combine"
    kernels = [
        Kernel(setting.kernel, setting.parameters(spec.pointers, "partial", (n,)), tuple(first)),
        Kernel(finish, setting.parameters(("partial",), wording.out, (n,)), tuple(second)),
    ]
    launches = [
        Launch(setting.kernel, blocks, threads, (*spec.pointers, "partial", n)).line(),
        Launch(finish, "1", "1", ("partial", wording.out, n)).line(),
    ]
    statements = [
        f"{n} = {spec.main}.size",
        f"partial = cp.empty(({parts},), cp.float32)",
        f"{wording.out} = cp.empty((), cp.float32)",
        *launches,
        f"return {wording.out}",
    ]
    return render(wording, kernels, spec.arguments, statements)


def accumulators(spec: Spec, rng: Random) -> Program:
    """One block without much of a tree: four accumulators per thread, then thread 0 combines."""
    setting = _setting(spec, rng, spec.enough((32, 64, 128)))
    wording, acc = setting.style, spec.fold.variable
    i, n, threads = wording.index, wording.count, wording.block
    head = f"for (; {i} + {threads} < {n}; {i} += {2 * threads})"
    second = setting.update(f"{acc}1", f"{i} + {threads}")
    scoped = second if len(second) == 1 else ["{", *(f"  {line}" for line in second), "}"]
    one = setting.update(f"{acc}0", i)
    body = [
        f"__shared__ float part[{threads}];",
        f"int t = threadIdx.x, {i} = t;",
        f"float {acc}0 = {spec.fold.start}, {acc}1 = {spec.fold.start};",
        *block(head, [*(one if len(one) == 1 else ["{", *(f"  {line}" for line in one), "}"]), *scoped]),
        *block(f"if ({i} < {n})", one),
        f"part[t] = {acc}0;",
        spec.fold.merged("part[t]", f"{acc}1"),
        "__syncthreads();",
        *block(
            "if (t == 0)",
            [
                f"float {acc} = part[0];",
                f"for (int s = 1; s < {threads}; ++s) {spec.fold.merged(acc, 'part[s]')}",
                *setting.store(acc, n),
            ],
        ),
    ]
    kernel = Kernel(setting.kernel, setting.parameters(spec.pointers, wording.out, (n,)), tuple(body))
    launch = Launch(setting.kernel, "1", str(threads), (*spec.pointers, wording.out, f"{spec.main}.size")).line()
    statements = [f"{wording.out} = cp.empty((), cp.float32)", launch, f"return {wording.out}"]
    return Program(
        text=render(wording, [kernel], spec.arguments, statements),
        form="accumulators",
        techniques=("one kernel", "several accumulators", "loop unrolling", *_fused(spec)),
        design=f"One block of {threads} threads, two accumulators each; one barrier, then thread 0 combines.",
        trait="keeps two accumulators per thread and needs a single barrier",
    )


def vector(spec: Spec, rng: Random) -> Program:
    """One warp or block reads float4 and the tail apart; thread 0 combines."""
    setting = _setting(spec, rng, spec.enough((32, 64, 128)))
    wording, acc, v = setting.style, spec.fold.variable, setting.style.value
    i, n, threads = wording.index, wording.count, wording.block
    function = "f" if "f" not in (*spec.arguments, v) else "g"
    helper = chains.device_function(spec.chain, function, v) if spec.chain.steps else []
    loads = [f"float4 {name}4 = ((const float4*){name})[{i}];" for name in spec.pointers]

    def call(texts: list[str]) -> list[str]:
        value = f"{function}({', '.join(texts)})" if spec.chain.steps else texts[0]
        if spec.fold.uses_value_twice and spec.chain.steps:
            return [f"{v} = {value};", spec.fold.update(acc, v)]
        return [spec.fold.update(acc, value)]

    updates = [line for part in "xyzw" for line in call([f"{name}4.{part}" for name in spec.pointers])]
    declared = [f"float {v};"] if spec.fold.uses_value_twice and spec.chain.steps else []
    combine = [
        f"for (int s = 1; s < {threads}; ++s) {spec.fold.merged(acc, 'part[s]')}",
        *setting.store(acc, n),
    ]
    body = [
        f"__shared__ float part[{threads}];",
        "int t = threadIdx.x;",
        f"float {acc} = {spec.fold.start};",
        *declared,
        *block(f"for (int {i} = t; {i} < {n} / 4; {i} += {threads})", [*loads, *updates]),
        *block(
            f"for (int {i} = {n} / 4 * 4 + t; {i} < {n}; {i} += {threads})",
            call([f"{name}[{i}]" for name in spec.pointers]),
        ),
        f"part[t] = {acc};",
        "__syncthreads();",
        *block("if (t == 0)", combine),
    ]
    kernel = Kernel(setting.kernel, setting.parameters(spec.pointers, wording.out, (n,)), tuple(body))
    launch = Launch(setting.kernel, "1", str(threads), (*spec.pointers, wording.out, f"{spec.main}.size")).line()
    statements = [f"{wording.out} = cp.empty((), cp.float32)", launch, f"return {wording.out}"]
    return Program(
        text=render(wording, [kernel], spec.arguments, statements, helper),
        form="vector",
        techniques=("vectorised loads", "one kernel", *_fused(spec)),
        design=f"One block of {threads} threads reads float4, then the tail; one barrier, thread 0 combines.",
        trait="reads float4 and needs a single barrier",
    )


def _fused(spec: Spec) -> tuple[str, ...]:
    return ("fusion",) if spec.chain.steps else ()


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """Forms whose threads add up few enough elements each."""
    suited: tuple[Callable[[Spec, Random], Program], ...] = (single_block, two_stages, thread_partials)
    if spec.fold.merge == SUM and spec.fold.finish in ("{a}", "{a} / {n}") and not spec.epilogue.steps:
        suited = (*suited, atomic_blocks)
    if spec.fold.exact or spec.elements <= 32 * layout.LONGEST_SUM:
        suited = (*suited, single_warp_tree)
    if spec.fold.exact or spec.elements <= 128 * layout.LONGEST_SUM:
        suited = (*suited, accumulators, vector)
    return suited
