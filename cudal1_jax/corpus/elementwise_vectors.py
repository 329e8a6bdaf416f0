"""Programs for elementwise chains that move float4."""

import dataclasses
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus.elementwise_setting import Spec, all_steps, draw_setting, flat_program, fusion
from cudal1_jax.corpus.program import Program, block


def vector(spec: Spec, rng: Random) -> Program:
    setting = draw_setting(spec, rng)
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
        text=flat_program(setting, body, wording.grid(n, wording.block * 4), tuple(helper)),
        form="vector",
        techniques=("vectorised loads", "several items per thread", *fusion(spec)),
        design=f"float4 loads and stores, blocks of {wording.block}, scalar tail{all_steps(spec)}.",
        trait="moves four elements per thread as float4",
    )


def four_vectors(spec: Spec, rng: Random) -> Program:
    """Four float4 a block apart per thread, 64-bit indices, a device function, the tail by the first block."""
    setting = dataclasses.replace(draw_setting(spec, rng, (128, 256, 256)), wide=True)
    wording, threads = setting.style, setting.style.block
    wording = dataclasses.replace(wording, restrict=True)
    setting = dataclasses.replace(setting, style=wording)
    i, n, v = wording.index, wording.count, wording.value
    function = rng.choice(("apply", "f", "op", "step", "value_of"))
    helper = chains.device_function(spec.chain, function, v)
    full = [spec.main, *(operand.name for operand in spec.chain.operands if operand.place == "full")]
    scalars = {operand.name: f"{operand.name}[0]" for operand in spec.chain.operands if operand.place == "scalar"}

    def call(texts: dict[str, str]) -> str:
        return f"{function}({', '.join((texts | scalars)[name] for name in (spec.main, *spec.chain.pointers))})"

    loads = [f"float4 {v} = ((const float4*){spec.main})[{i}];"]
    loads += [f"float4 {name}4 = ((const float4*){name})[{i}];" for name in full[1:]]
    registers = {name: f"{name}4" for name in full} | {spec.main: v}
    updates = [f"{v}.{part} = {call({name: f'{registers[name]}.{part}' for name in full})};" for part in "xyzw"]
    inside = block(f"if ({i} < vectors)", [*loads, *updates, f"((float4*){wording.out})[{i}] = {v};"])
    body = [
        f"long long vectors = {n} / 4;",
        f"long long {i} = (long long)blockIdx.x * {4 * threads} + threadIdx.x;",
        "#pragma unroll",
        *block("for (int k = 0; k < 4; ++k)", [*inside, f"{i} += {threads};"]),
        "long long rest = vectors * 4 + threadIdx.x;",
        f"if (blockIdx.x == 0 && rest < {n}) {wording.out}[rest] = {call({name: f'{name}[rest]' for name in full})};",
    ]
    return Program(
        text=flat_program(setting, body, wording.grid(n, threads * 16), tuple(helper)),
        form="four_vectors",
        techniques=("vectorised loads", "several items per thread", "loop unrolling", *fusion(spec)),
        design=f"Four float4 per thread, {threads} apart, blocks of {threads}, a scalar tail{all_steps(spec)}.",
        trait="moves four float4 per thread and pays for index arithmetic once",
    )
