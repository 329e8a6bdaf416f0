"""Programs that reduce lines whose elements lie apart in memory."""

from random import Random

from cudal1_jax.corpus.program import Program, block
from cudal1_jax.corpus.reduction_forms import Setting, Spec, draw_setting, scoped


def line_per_thread(spec: Spec, rng: Random) -> Program:
    setting = draw_setting(spec, rng)
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
    setting = draw_setting(spec, rng)
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
            [*scoped(setting.update(names[0], at, k)), *scoped(setting.update(names[1], step, f"{k} + 1"))],
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
    setting = draw_setting(spec, rng, (32, 64, 128))
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
    setting = draw_setting(spec, rng, (32,))
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
