"""Programs that reduce contiguous rows."""

from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout
from cudal1_jax.corpus.program import Program, block
from cudal1_jax.corpus.reduction_forms import Setting, Spec, draw_setting, scoped

BLOCKS = (32, 64, 64, 128, 128, 256)  # threads that share a row


def row_per_thread(spec: Spec, rng: Random) -> Program:
    setting = draw_setting(spec, rng, (32, 64, 128, 256))
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
    setting = draw_setting(spec, rng, (32, 64, 128))
    wording, extents, acc = setting.style, setting.extents, spec.fold.variable
    row, j, columns = wording.row, wording.column, wording.columns
    ways = rng.choice((2, 4, 4)) if spec.lines.length <= layout.LONGEST_SUM else 4
    names = [f"{acc}{k}" for k in range(ways)]
    at = f"{row} * {columns} + {j}"
    starts = ", ".join(f"{name} = {spec.fold.start}" for name in names)
    inner = [line for k, name in enumerate(names) for line in scoped(setting.update(name, _plus(at, k), _plus(j, k)))]
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
    setting = draw_setting(spec, rng, spec.lines.blocks(BLOCKS))
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
    setting = draw_setting(spec, rng, (32,))
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
    setting = draw_setting(spec, rng, (32, 64))
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


def _store_by_first(setting: Setting, accumulator: str, at: str, length: str, thread: str) -> list[str]:
    lines = setting.store(accumulator, at, length)
    if len(lines) == 1:
        return [f"if ({thread} == 0) {lines[0]}"]
    return block(f"if ({thread} == 0)", lines)


def _plus(text: str, amount: int) -> str:
    return f"{text} + {amount}" if amount else text
