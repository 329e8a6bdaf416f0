"""Programs for elementwise chains: how threads take elements."""

import dataclasses
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.elementwise_setting import (
    Setting,
    Spec,
    all_steps,
    draw_setting,
    flat_program,
    fusion,
    with_scalars,
)
from cudal1_jax.corpus.elementwise_vectors import four_vectors, vector
from cudal1_jax.corpus.program import Kernel, Launch, Program, block, render


def one_per_thread(spec: Spec, rng: Random) -> Program:
    setting = with_scalars(draw_setting(spec, rng), rng)
    wording = setting.style
    i, n = wording.index, wording.count
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    if rng.random() < 0.3:
        body = [f"{setting.integer} {i} = {setting.thread};", f"if ({i} >= {n}) return;", *store]
    else:
        body = [f"{setting.integer} {i} = {setting.thread};", *block(f"if ({i} < {n})", store)]
    return Program(
        text=flat_program(setting, body, wording.grid(n)),
        form="one",
        techniques=("one element per thread", *fusion(spec)),
        design=f"One thread per element, blocks of {wording.block}{all_steps(spec)}.",
        trait="starts a thread for every element",
    )


def grid_stride(spec: Spec, rng: Random) -> Program:
    setting = with_scalars(draw_setting(spec, rng), rng)
    wording = setting.style
    i, n = wording.index, wording.count
    blocks = rng.choice((8, 16, 32, 64, 128, 256))
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    head = f"for ({setting.integer} {i} = {setting.thread}; {i} < {n}; {i} += gridDim.x * {wording.width})"
    return Program(
        text=flat_program(setting, block(head, store), str(blocks)),
        form="stride",
        techniques=("grid-stride loop", *fusion(spec)),
        design=f"A grid-stride loop on {blocks} blocks of {wording.block} threads{all_steps(spec)}.",
        trait=f"walks the array with a grid-stride loop of {blocks} blocks",
    )


def chunk(spec: Spec, rng: Random) -> Program:
    setting = dataclasses.replace(with_scalars(draw_setting(spec, rng), rng), wide=False)
    wording = setting.style
    i, n = wording.index, wording.count
    items = rng.choice((4, 8, 16, 32))
    store = setting.write(f"{spec.main}[{i}]", i, setting.flat_operands(i))
    body = [
        f"int start = ({wording.thread}) * {items};",
        *block(f"for (int {i} = start; {i} < min(start + {items}, {n}); ++{i})", store),
    ]
    return Program(
        text=flat_program(setting, body, wording.grid(n, wording.block * items)),
        form="chunk",
        techniques=("several items per thread", "contiguous chunk per thread", *fusion(spec)),
        design=f"Each thread takes {items} neighbouring elements, blocks of {wording.block}{all_steps(spec)}.",
        trait=f"gives {items} neighbouring elements to each thread",
    )


def strided_items(spec: Spec, rng: Random) -> Program:
    setting = dataclasses.replace(with_scalars(draw_setting(spec, rng), rng), wide=False)
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
        text=flat_program(setting, body, wording.grid(n, wording.block * items)),
        form="items",
        techniques=("several items per thread", "loop unrolling", *fusion(spec)),
        design=f"Each thread takes {items} elements, {wording.block} apart, unrolled{all_steps(spec)}.",
        trait=f"unrolls {items} elements per thread",
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
    setting = draw_setting(spec, rng)
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
        techniques=("2-D grid", "one element per thread", *fusion(spec)),
        design=f"A 2-D grid: blockIdx.y is the row, {wording.block} threads along the columns{all_steps(spec)}.",
        trait="uses a 2-D grid, so no division is needed for the row",
    )


def row_per_block(spec: Spec, rng: Random) -> Program:
    setting = draw_setting(spec, rng, (32, 64, 128, 256))
    wording, names = setting.style, setting.extents.names
    column, row, i = wording.column, wording.row, wording.index
    store = setting.write(f"{spec.main}[{i}]", i, _row_operands(spec, row, column, i))
    head = f"for (int {column} = threadIdx.x; {column} < {wording.columns}; {column} += {wording.width})"
    body = [f"int {row} = blockIdx.x;", *block(head, [f"int {i} = {row} * {wording.columns} + {column};", *store])]
    return Program(
        text=_by_rows(setting, body, names[0], str(wording.block), needs_rows=False),
        form="row_block",
        techniques=("one block per row", *fusion(spec)),
        design=f"One block of {wording.block} threads per row, each thread strides over the columns{all_steps(spec)}.",
        trait="gives a row to each block and strides over its columns",
    )


def row_per_thread(spec: Spec, rng: Random) -> Program:
    setting = draw_setting(spec, rng, (32, 64, 128))
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
        techniques=("one row per thread", *fusion(spec)),
        design=f"One thread per row, blocks of {wording.block}, a loop over the columns{all_steps(spec)}.",
        trait="walks a whole row in each thread",
    )


def plane_per_row_of_blocks(spec: Spec, rng: Random) -> Program:
    """Everything after dimension 1 is a plane; blockIdx.y is its number, so channel and batch need no division of i."""
    setting = draw_setting(spec, rng)
    wording, names = setting.style, setting.extents.names
    i = wording.index
    texts = {
        "full": i,
        "row": f"p % {wording.columns}",
        "channel": "blockIdx.y % channels",
        "batch": "blockIdx.y / channels",
        "item": "blockIdx.y % channels * inner + p",
        "scalar": "0",
    }
    operands = {operand.name: f"{operand.name}[{texts[operand.place]}]" for operand in spec.chain.operands}
    integers = {"inner": " * ".join(names[2:])}
    if spec.places & {"channel", "batch", "item"}:
        integers["channels"] = names[1]
    if "row" in spec.places:
        integers[wording.columns] = names[-1]
    store = setting.write(f"{spec.main}[{i}]", i, operands)
    body = [
        f"int p = {wording.thread};",
        *block("if (p < inner)", [f"int {i} = blockIdx.y * inner + p;", *store]),
    ]
    kernel = Kernel(setting.kernel, setting.parameters(tuple(integers)), tuple(body))
    arguments = (spec.main, *spec.chain.pointers, wording.out, *integers.values())
    grid = f"{wording.grid(integers['inner'])}, {names[0]} * {names[1]}"
    launch = Launch(setting.kernel, grid, str(wording.block), arguments).line()
    return Program(
        text=setting.finish(kernel, [launch], unpack=True, count=False),
        form="planes",
        techniques=("2-D grid", "one element per thread", *fusion(spec)),
        design=f"A 2-D grid: blockIdx.y is batch and channel, {wording.block} threads along the rest{all_steps(spec)}.",
        trait="finds batch and channel from a 2-D grid",
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


def forms(spec: Spec) -> tuple[Callable[[Spec, Random], Program], ...]:
    """The forms that suit a task, the plain one first."""
    suited = [one_per_thread, grid_stride, chunk, strided_items]
    if spec.flat:
        suited += [vector, four_vectors]
    if len(spec.shape) == 2:
        suited += [two_dimensional, row_per_block, row_per_thread]
    if len(spec.shape) > 2:
        suited += [plane_per_row_of_blocks] * (1 if spec.flat else 3)
    if spec.flat and len(spec.chain.steps) == 2 and not spec.chain.uses_origin:
        suited.append(unfused)
    return tuple(suited)
