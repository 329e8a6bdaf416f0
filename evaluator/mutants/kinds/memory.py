"""Faults of indices, shared memory, atomics and starting values."""

from collections.abc import Iterator

from evaluator.mutants import syntax
from evaluator.mutants.program import Edit, Program
from evaluator.program.cuda_tokens import Kind

_OTHER_LANE = {"x": "y", "y": "x", "z": "w", "w": "z"}
_OTHER_AXIS = {"x": "y", "y": "x", "z": "y"}


def index_stride(p: Program) -> Iterator[Edit]:
    """`row * n + i` becomes `row * (n + 1) + i`, for integers."""
    names = syntax.floating_names(p)
    for i in syntax.binary(p, "*"):
        end = syntax.primary_end(p, i + 1)
        whole = not syntax.is_floating(p, syntax.primary_start(p, i - 1), end, names)
        if whole and p.spots[i + 1].kind is Kind.IDENTIFIER and p.word(i - 1) not in ("half", ">"):
            yield p.edit(i + 1, end, f"({p.cuda(i + 1, end)} + 1)")


def index_shifted(p: Program) -> Iterator[Edit]:
    """`x[i]` becomes `x[i + 1]`."""
    for i in range(1, len(p.spots) - 2):
        element = p.spots[i - 1].kind is Kind.IDENTIFIER and p.word(i - 2) not in syntax.TYPES
        if p.word(i) == "[" and element and i in p.partner and p.spots[i + 1].kind is Kind.IDENTIFIER:
            yield p.edit(i + 1, p.partner[i], f"{p.cuda(i + 1, p.partner[i])} + 1")


def vector_lane(p: Program) -> Iterator[Edit]:
    """`v.x` becomes `v.y`, `v.z` becomes `v.w`, and the other way round."""
    for i in _members(p):
        if p.word(i) in _OTHER_LANE and p.word(i - 2) not in syntax.BUILT_IN and p.word(i + 1) != "[":
            yield p.edit(i, i + 1, _OTHER_LANE[p.word(i)])


def wrong_axis(p: Program) -> Iterator[Edit]:
    """`blockIdx.x` becomes `blockIdx.y` and so on."""
    for i in _members(p):
        if p.word(i) in _OTHER_AXIS and p.word(i - 2) in syntax.BUILT_IN:
            yield p.edit(i, i + 1, _OTHER_AXIS[p.word(i)])


def shared_memory_halved(p: Program) -> Iterator[Edit]:
    """A shared array has half of its elements."""
    for i in range(len(p.spots) - 3):
        if p.word(i) != "__shared__" or p.word(i - 1) == "extern":
            continue
        opening = next((j for j in range(i, min(i + 8, len(p.spots))) if p.word(j) in ("[", ";")), i)
        if p.word(opening) == "[" and p.partner.get(opening, opening) > opening + 1:
            close = p.partner[opening]
            yield p.edit(opening + 1, close, f"({p.cuda(opening + 1, close)}) / 2")


def atomic_to_plain(p: Program) -> Iterator[Edit]:
    """An atomic update becomes a read and a write."""
    for name, arguments in syntax.calls(p, "atomicAdd", "atomicMax", "atomicMin"):
        stands_alone = p.word(name - 1) in (";", "{", "}", ")", "else") and p.word(p.partner[name + 1] + 1) == ";"
        if len(arguments) != 2 or not stands_alone:
            continue
        target, value = f"*({p.cuda(*arguments[0])})", f"({p.cuda(*arguments[1])})"
        function = {"atomicMax": "max", "atomicMin": "min"}.get(p.word(name))
        result = f"{function}({target}, {value})" if function else f"{target} + {value}"
        yield p.edit(name, p.partner[name + 1] + 1, f"{target} = {result}")


def reduction_identity(p: Program) -> Iterator[Edit]:
    """A fold starts from the wrong value: an extremum from 0, a sum from 1, a product from 0."""
    folded = _folded(p)
    for each in syntax.declared(p):
        if each.initial is None or each.indirect or each.type not in ("float", "double") or each.name not in folded:
            continue
        zero = p.cuda(*each.initial).rstrip("fF") in ("0", "0.", "0.0")
        yield p.edit(*each.initial, "1.0f" if zero else "0.0f")


def initial_value_missing(p: Program) -> Iterator[Edit]:
    """`float sum = 0.0f;` becomes `float sum;`."""
    folded = _folded(p)
    for each in syntax.declared(p):
        if each.initial is not None and (each.name in folded or p.word(each.initial[0]) == "{"):
            yield p.edit(each.name_at + 1, each.initial[1], p.cuda(each.name_at + 1, each.initial[0] - 1))


def _folded(p: Program) -> frozenset[str]:
    """Names that are updated from themselves: `s += x`, `s *= x`, `s = fmaxf(s, x)`, `if (x > s) s = x`."""
    found = set()
    for first, behind in syntax.statements(p):
        at = syntax.assignment(p, first, behind)
        if at is None or at != first + 1:
            continue
        again = p.word(first) in [p.word(i) for i in range(at + 1, behind)]
        compared = p.word(first - 2) == p.word(first) and p.word(first - 1) == ")"
        if p.word(at) in ("+=", "*=") or again or compared:
            found.add(p.word(first))
    return frozenset(found)


def _members(p: Program) -> Iterator[int]:
    for i in range(2, len(p.spots)):
        if p.word(i - 1) == "." and p.spots[i].kind is Kind.IDENTIFIER and syntax.ends_operand(p, i - 2):
            yield i
