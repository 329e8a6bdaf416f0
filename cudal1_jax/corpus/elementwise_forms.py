"""Programs for elementwise chains: how threads take elements, and how operands are addressed."""

import dataclasses
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import kernel_name
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render
from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Spec:
    """An elementwise task: `main` has the shape of the output, operands are broadcast against it."""

    chain: Chain
    main: str
    shape: tuple[int, ...]
    arguments: tuple[str, ...]  # names in the order of `forward`

    @property
    def places(self) -> set[str]:
        return {operand.place for operand in self.chain.operands}

    @property
    def flat(self) -> bool:
        """Every operand is addressed by the element's own index or not at all."""
        return self.places <= {"full", "scalar"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the forms share: wording, extents, and the arguments a flat index needs."""

    style: Style
    extents: Extents
    spec: Spec
    kernel: str
    scalars: tuple[tuple[str, str], ...] = ()  # constants that are arguments of the kernel: name, value

    def flat_operands(self, index: str) -> dict[str, str]:
        """CUDA expression of each operand at the flat element `index`."""
        texts = {
            "full": index,
            "row": f"{index} % {self.style.columns}",
            "column": f"{index} / {self.style.columns}",
            "channel": f"{index} / inner % channels",
            "scalar": "0",
        }
        return {operand.name: f"{operand.name}[{texts[operand.place]}]" for operand in self.spec.chain.operands}

    def flat_parameters(self) -> dict[str, str]:
        """Integer parameters that the flat index needs, each with its Python expression."""
        places, rank, main = self.spec.places, len(self.spec.shape), self.spec.main
        extra = {}
        if places & {"row", "column"}:
            extra[self.style.columns] = f"{main}.shape[{rank - 1}]"
        if "channel" in places:
            extra["channels"] = f"{main}.shape[1]"
            extra["inner"] = layout.product([f"{main}.shape[{dim}]" for dim in range(2, rank)])
        return extra

    def parameters(self, integers: tuple[str, ...]) -> tuple[str, ...]:
        pointers = self.style.pointers((self.spec.main, *self.spec.chain.pointers))
        numbers = (*(f"int {name}" for name in integers), *(f"float {name}" for name, _ in self.scalars))
        return (*pointers, self.style.pointer(self.style.out, "float*"), *numbers)

    def write(self, load: str, at: str, operands: dict[str, str]) -> list[str]:
        lines, last = chains.statements(self.spec.chain, load, operands, self.style.value)
        return [*lines, f"{self.style.out}[{at}] = {last};"]

    def forward(self, launch: list[str], unpack: bool, count: bool) -> list[str]:
        head = [self.extents.statement] if unpack else []
        if count:
            head.append(f"{self.style.count} = {self.spec.main}.size")
        out = f"{self.style.out} = cp.empty({self.spec.main}.shape, cp.float32)"
        return [*head, out, *launch, f"return {self.style.out}"]

    def finish(
        self, kernel: Kernel, launch: list[str], unpack: bool, count: bool, helpers: tuple[str, ...] = ()
    ) -> str:
        body = self.forward(launch, unpack, count)
        return render(self.style, [kernel], self.spec.arguments, body, helpers)


def _setting(spec: Spec, rng: Random, blocks: tuple[int, ...] = style.BLOCKS) -> Setting:
    wording = style.draw(rng, spec.arguments, blocks)
    lines = Lines(spec.shape, (len(spec.shape) - 1,))
    extents = layout.extents(rng, lines, spec.main, (*spec.arguments, wording.out, wording.count))
    return Setting(wording, extents, spec, kernel_name(rng, spec.chain, "pointwise"))


def _with_scalars(setting: Setting, rng: Random) -> Setting:
    """Now and then, the constants of the first step that has any become arguments of the kernel."""
    spec = setting.spec
    place = next((place for place, step in enumerate(spec.chain.steps) if step.constants), None)
    if place is None or rng.random() > 0.15:
        return setting
    names = [name for name in ("alpha", "beta", "factor", "c0", "c1") if name not in spec.arguments]
    step = spec.chain.steps[place]
    named = dataclasses.replace(step, named=tuple(names[: len(step.constants)]))
    chain = dataclasses.replace(spec.chain, steps=(*spec.chain.steps[:place], named, *spec.chain.steps[place + 1 :]))
    return dataclasses.replace(
        setting,
        spec=dataclasses.replace(spec, chain=chain),
        scalars=tuple(zip(named.named, step.constants, strict=True)),
    )


def _flat(setting: Setting, body: list[str], grid: str, helpers: tuple[str, ...] = ()) -> str:
    """A program over flat indices: `body` sees the pointers, the count and what broadcasting needs."""
    wording, extra = setting.style, setting.flat_parameters()
    kernel = Kernel(setting.kernel, setting.parameters((wording.count, *extra)), tuple(body))
    scalars = (f"cp.float32({value})" for _, value in setting.scalars)
    arguments = (setting.spec.main, *setting.spec.chain.pointers, wording.out, wording.count, *extra.values(), *scalars)
    launch = Launch(setting.kernel, grid, str(wording.block), arguments).line()
    return setting.finish(kernel, [launch], unpack=False, count=True, helpers=helpers)


def one_per_thread(spec: Spec, rng: Random) -> Program:
    setting = _with_scalars(_setting(spec, rng), rng)
    wording = setting.style
    i, n = wording.index, wording.count
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    if rng.random() < 0.3:
        body = [f"int {i} = {wording.thread};", f"if ({i} >= {n}) return;", *store]
    else:
        body = [f"int {i} = {wording.thread};", *block(f"if ({i} < {n})", store)]
    return Program(
        text=_flat(setting, body, wording.grid(n)),
        form="one",
        techniques=("one element per thread", *_fusion(spec)),
        design=f"One thread per element, blocks of {wording.block}{_all_steps(spec)}.",
        trait="starts a thread for every element",
    )


def grid_stride(spec: Spec, rng: Random) -> Program:
    setting = _with_scalars(_setting(spec, rng), rng)
    wording = setting.style
    i, n = wording.index, wording.count
    blocks = rng.choice((8, 16, 32, 64, 128, 256))
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    head = f"for (int {i} = {wording.thread}; {i} < {n}; {i} += gridDim.x * {wording.width})"
    return Program(
        text=_flat(setting, block(head, store), str(blocks)),
        form="stride",
        techniques=("grid-stride loop", *_fusion(spec)),
        design=f"A grid-stride loop on {blocks} blocks of {wording.block} threads{_all_steps(spec)}.",
        trait=f"walks the array with a grid-stride loop of {blocks} blocks",
    )


def chunk(spec: Spec, rng: Random) -> Program:
    setting = _with_scalars(_setting(spec, rng), rng)
    wording = setting.style
    i, n = wording.index, wording.count
    items = rng.choice((4, 8, 16, 32))
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    body = [
        f"int start = ({wording.thread}) * {items};",
        *block(f"for (int {i} = start; {i} < min(start + {items}, {n}); ++{i})", store),
    ]
    return Program(
        text=_flat(setting, body, wording.grid(n, wording.block * items)),
        form="chunk",
        techniques=("several items per thread", "contiguous chunk per thread", *_fusion(spec)),
        design=f"Each thread takes {items} neighbouring elements, blocks of {wording.block}{_all_steps(spec)}.",
        trait=f"gives {items} neighbouring elements to each thread",
    )


def strided_items(spec: Spec, rng: Random) -> Program:
    setting = _with_scalars(_setting(spec, rng), rng)
    wording = setting.style
    i, n = wording.index, wording.count
    items = rng.choice((2, 4, 8))
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    body = [
        f"int first = blockIdx.x * {wording.block * items} + threadIdx.x;",
        "#pragma unroll",
        *block(
            f"for (int k = 0; k < {items}; ++k)",
            [f"int {i} = first + k * {wording.block};", *block(f"if ({i} < {n})", store)],
        ),
    ]
    return Program(
        text=_flat(setting, body, wording.grid(n, wording.block * items)),
        form="items",
        techniques=("several items per thread", "loop unrolling", *_fusion(spec)),
        design=f"Each thread takes {items} elements, {wording.block} apart, unrolled{_all_steps(spec)}.",
        trait=f"unrolls {items} elements per thread",
    )


def vector(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    wording = setting.style
    i, n = wording.index, wording.count
    function = rng.choice(("apply", "f", "op", "steps"))
    helper = chains.device_function(spec.chain, function, wording.value)
    full = [spec.main, *(operand.name for operand in spec.chain.operands if operand.place == "full")]
    scalars = {operand.name: f"{operand.name}[0]" for operand in spec.chain.operands if operand.place == "scalar"}
    order = (spec.main, *spec.chain.pointers)

    def call(texts: dict[str, str]) -> str:
        return f"{function}({', '.join((texts | scalars)[name] for name in order)})"

    registers = {name: f"{name}4" for name in full}
    loads = [f"float4 {registers[name]} = *(const float4*)({name} + {i});" for name in full]
    target = registers[spec.main]
    updates = [f"{target}.{part} = {call({name: f'{registers[name]}.{part}' for name in full})};" for part in "xyzw"]
    tail = block(
        f"for (int k = {i}; k < {n}; ++k)", [f"{wording.out}[k] = {call({name: f'{name}[k]' for name in full})};"]
    )
    body = [
        f"int {i} = ({wording.thread}) * 4;",
        f"if ({i} + 3 < {n}) {{",
        *(f"  {line}" for line in (*loads, *updates, f"*(float4*)({wording.out} + {i}) = {target};")),
        "} else {",
        *(f"  {line}" for line in tail),
        "}",
    ]
    return Program(
        text=_flat(setting, body, wording.grid(n, wording.block * 4), tuple(helper)),
        form="vector",
        techniques=("vectorised loads", "several items per thread", *_fusion(spec)),
        design=f"float4 loads and stores, blocks of {wording.block}, scalar tail{_all_steps(spec)}.",
        trait="moves four elements per thread as float4",
    )


def _row_operands(spec: Spec, row: str, column: str, i: str) -> dict[str, str]:
    texts = {"full": i, "row": column, "column": row, "scalar": "0"}
    return {operand.name: f"{operand.name}[{texts[operand.place]}]" for operand in spec.chain.operands}


def _by_rows(setting: Setting, body: list[str], grid: str, threads: str, needs_rows: bool) -> str:
    wording, spec, names = setting.style, setting.spec, setting.extents.names
    integers = {wording.rows: names[0], wording.columns: names[1]} if needs_rows else {wording.columns: names[1]}
    kernel = Kernel(setting.kernel, setting.parameters(tuple(integers)), tuple(body))
    arguments = (spec.main, *spec.chain.pointers, wording.out, *integers.values())
    launch = Launch(setting.kernel, grid, threads, arguments).line()
    return setting.finish(kernel, [launch], unpack=True, count=False)


def two_dimensional(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng)
    wording, names = setting.style, setting.extents.names
    column, i = wording.column, wording.index
    operands = _row_operands(spec, "blockIdx.y", column, i)
    store = setting.write(f"{spec.main}[{i}]", i, operands)
    body = [
        f"int {column} = {wording.thread};",
        *block(f"if ({column} < {wording.columns})", [f"int {i} = blockIdx.y * {wording.columns} + {column};", *store]),
    ]
    return Program(
        text=_by_rows(setting, body, f"{wording.grid(names[1])}, {names[0]}", str(wording.block), needs_rows=False),
        form="grid2d",
        techniques=("2-D grid", "one element per thread", *_fusion(spec)),
        design=f"A 2-D grid: blockIdx.y is the row, {wording.block} threads along the columns{_all_steps(spec)}.",
        trait="uses a 2-D grid, so no division is needed for the row",
    )


def row_per_block(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128, 256))
    wording, names = setting.style, setting.extents.names
    column, row, i = wording.column, wording.row, wording.index
    store = setting.write(f"{spec.main}[{i}]", i, _row_operands(spec, row, column, i))
    head = f"for (int {column} = threadIdx.x; {column} < {wording.columns}; {column} += {wording.width})"
    body = [f"int {row} = blockIdx.x;", *block(head, [f"int {i} = {row} * {wording.columns} + {column};", *store])]
    return Program(
        text=_by_rows(setting, body, names[0], str(wording.block), needs_rows=False),
        form="row_block",
        techniques=("one block per row", *_fusion(spec)),
        design=f"One block of {wording.block} threads per row, each thread strides over the columns{_all_steps(spec)}.",
        trait="gives a row to each block and strides over its columns",
    )


def row_per_thread(spec: Spec, rng: Random) -> Program:
    setting = _setting(spec, rng, (32, 64, 128))
    wording, names = setting.style, setting.extents.names
    column, row, i = wording.column, wording.row, wording.index
    store = setting.write(f"{spec.main}[{i}]", i, _row_operands(spec, row, column, i))
    body = [
        f"int {row} = {wording.thread};",
        *block(
            f"if ({row} < {wording.rows})",
            block(
                f"for (int {column} = 0; {column} < {wording.columns}; ++{column})",
                [f"int {i} = {row} * {wording.columns} + {column};", *store],
            ),
        ),
    ]
    return Program(
        text=_by_rows(setting, body, wording.grid(names[0]), str(wording.block), needs_rows=True),
        form="row_thread",
        techniques=("one row per thread", *_fusion(spec)),
        design=f"One thread per row, blocks of {wording.block}, a loop over the columns{_all_steps(spec)}.",
        trait="walks a whole row in each thread",
    )


def unfused(spec: Spec, rng: Random) -> Program:
    """A kernel per step with a temporary array between them."""
    wording = style.draw(rng, (*spec.arguments, "temp", "first", "second"))
    i, n, source = wording.index, wording.count, spec.main
    kernels, launches = [], []
    for place, step in enumerate(spec.chain.steps):
        name, target = ("first", "temp") if place == 0 else ("second", wording.out)
        single = Chain((step,), tuple(o for o in spec.chain.operands if o.name == step.operand))
        operands = {o.name: f"{o.name}[{i if o.place == 'full' else '0'}]" for o in single.operands}
        lines, last = chains.statements(single, f"{source}[{i}]", operands, wording.value)
        body = [f"int {i} = {wording.thread};", *block(f"if ({i} < {n})", [*lines, f"{target}[{i}] = {last};"])]
        parameters = (*wording.pointers((source, *single.pointers)), wording.pointer(target, "float*"), f"int {n}")
        kernels.append(Kernel(name, parameters, tuple(body)))
        launches.append(Launch(name, wording.grid(n), str(wording.block), (source, *single.pointers, target, n)).line())
        source = target
    arrays = [f"{name} = cp.empty({spec.main}.shape, cp.float32)" for name in ("temp", wording.out)]
    body = [f"{n} = {spec.main}.size", *arrays, *launches, f"return {wording.out}"]
    return Program(
        text=render(wording, kernels, spec.arguments, body),
        form="unfused",
        techniques=("one kernel per step", "one element per thread"),
        design="One kernel per step with a temporary array between them.",
        trait="writes and reads a temporary array between its two kernels",
    )


def _fusion(spec: Spec) -> tuple[str, ...]:
    return ("fusion",) if len(spec.chain.steps) > 1 else ()


def _all_steps(spec: Spec) -> str:
    count = len(spec.chain.steps)
    return f"; all {count} steps in one kernel" if count > 1 else ""


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """The forms that suit a task, the plain one first."""
    suited = [one_per_thread, grid_stride, chunk, strided_items]
    if spec.flat:
        suited += [vector, vector]
    if len(spec.shape) == 2:
        suited += [two_dimensional, row_per_block, row_per_thread]
    if spec.flat and len(spec.chain.steps) == 2 and not spec.chain.uses_origin:
        suited.append(unfused)
    return tuple(suited)
