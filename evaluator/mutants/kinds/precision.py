"""Faults of precision: sums and operands with fewer bits, cruder functions, a narrower type.

Half and bfloat16 are rounded to in float32's own bits, to nearest, so that the change needs no header.
"""

from collections.abc import Iterator

from evaluator.mutants import syntax
from evaluator.mutants.program import Edit, Program

_HALF = (0x1000, 0xFFFFE000)  # half of the last bit kept, and the mask that keeps 10 bits of the fraction
_BF16 = (0x8000, 0xFFFF0000)  # the same for 7 bits

# What a hurried author may write instead. {} stands for the argument.
_CRUDER = {
    "expf": "exp2f(1.4427f * ({}))",
    "logf": "(0.6931f * log2f({}))",
    "tanhf": "(1.0f - 2.0f / (expf(2.0f * ({})) + 1.0f))",
    "erff": "tanhf(1.128379f * ({0}) + 0.1009f * ({0}) * ({0}) * ({0}))",
    "expm1f": "(expf({}) - 1.0f)",
    "log1pf": "logf(1.0f + ({}))",
    "sqrtf": "__int_as_float((__float_as_int({}) >> 1) + 0x1fbd1df5)",
    "rsqrtf": "__int_as_float(0x5f3759df - (__float_as_int({}) >> 1))",
}


def sum_in_half(p: Program) -> Iterator[Edit]:
    """An accumulator is rounded to half's 11 bits after each addition."""
    yield from _rounded_sums(p, _HALF)


def sum_in_bf16(p: Program) -> Iterator[Edit]:
    """An accumulator is rounded to bfloat16's 8 bits after each addition."""
    yield from _rounded_sums(p, _BF16)


def operand_in_half(p: Program) -> Iterator[Edit]:
    """An element that is read from an array is rounded to half's 11 bits."""
    yield from _rounded_reads(p, _HALF)


def operand_in_bf16(p: Program) -> Iterator[Edit]:
    """An element that is read from an array is rounded to bfloat16's 8 bits."""
    yield from _rounded_reads(p, _BF16)


def crude_function(p: Program) -> Iterator[Edit]:
    """`expf`, `tanhf` and the like become an approximation, or a form that cancels."""
    for name, arguments in syntax.calls(p, *_CRUDER):
        if len(arguments) == 1:
            crude = _CRUDER[p.word(name)].format(p.cuda(*arguments[0]))
            yield p.edit(name, p.partner[name + 1] + 1, crude)


def integer_temporary(p: Program) -> Iterator[Edit]:
    """A floating variable is declared as an integer."""
    for each in syntax.declared(p):
        if each.alone and not each.indirect and each.initial is not None and each.type in ("float", "double"):
            yield p.edit(each.type_at, each.type_at + 1, "int")


def _rounded_sums(p: Program, bits: tuple[int, int]) -> Iterator[Edit]:
    names = {each.name: each.indirect for each in syntax.declared(p)}
    for first, behind in syntax.statements(p):
        at = syntax.assignment(p, first, behind)
        moves_pointer = at == first + 1 and names.get(p.word(first), True)
        if at is not None and p.word(at) == "+=" and p.word(first) in names and not moves_pointer:
            target = p.cuda(first, at)
            yield p.edit(first, behind, f"{target} = {_rounded(f'{target} + ({p.cuda(at + 1, behind)})', bits)}")


def _rounded_reads(p: Program, bits: tuple[int, int]) -> Iterator[Edit]:
    arrays = {each.name for each in syntax.declared(p) if each.indirect and each.type == "float"}
    for i in range(len(p.spots) - 1):
        if (
            p.word(i) not in arrays
            or p.word(i + 1) != "["
            or i + 1 not in p.partner
            or p.word(i - 1) in ("float", "*", "&")
        ):
            continue
        behind = p.partner[i + 1] + 1
        while p.word(behind) == "[":
            behind = p.partner[behind] + 1
        if p.word(behind) not in syntax.ASSIGNMENTS and p.word(behind) not in ("++", "--"):
            yield p.edit(i, behind, _rounded(p.cuda(i, behind), bits))


def _rounded(value: str, bits: tuple[int, int]) -> str:
    half_of_last, mask = bits
    return f"__int_as_float((__float_as_int({value}) + {half_of_last:#x}) & {mask:#x})"
