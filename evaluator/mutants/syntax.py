"""What the kinds of fault need to know of CUDA text: operands, loops, conditions, statements, declared types.

Read from tokens alone, so it can err. An edit at a wrong place is a mutant that does not compile, and counted as such.
"""

import dataclasses
import re
from collections.abc import Iterator

from evaluator.mutants.program import Program
from evaluator.program.cuda_tokens import Kind

TYPES = frozenset(
    "auto bool char double float float2 float3 float4 half half2 int int2 int4 long short signed size_t "  # noqa: SIM905
    "uint2 uint4 unsigned void __half __half2".split()
)
FLOATING = frozenset({"float", "double", "float2", "float3", "float4"})
BUILT_IN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "*", "&", "static", "constexpr", "__shared__", "extern"})
_NO_OPERANDS = frozenset({"return", "case", "else", "do", "const", "in"}) | TYPES
_FLOAT_LITERAL = re.compile(r"(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?[fF]?")
ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", ">>=", "<<="})
COMPARISONS = frozenset({"<", "<=", ">", ">="})


def float_value(text: str) -> float | None:
    """Value of a floating literal of CUDA, None for any other token."""
    return float(text.rstrip("fF")) if _FLOAT_LITERAL.fullmatch(text) else None


def ends_operand(p: Program, index: int) -> bool:
    """Whether the token at `index` can end an operand."""
    spot = p.spots[index]
    if spot.kind is Kind.IDENTIFIER:
        return spot.text not in _NO_OPERANDS
    return spot.kind is Kind.NUMBER or spot.text in (")", "]")


def binary(p: Program, *operators: str) -> Iterator[int]:
    """Indices of binary operators among `operators`, inside function bodies or not."""
    for i in range(1, len(p.spots) - 1):
        if p.word(i) in operators and ends_operand(p, i - 1):
            after = p.spots[i + 1]
            if after.kind in (Kind.IDENTIFIER, Kind.NUMBER) or after.text in ("(", "-", "!", "*"):
                yield i


def comparisons(p: Program) -> Iterator[int]:
    """Indices of < <= > >= that compare, template brackets left out."""
    for i in binary(p, *COMPARISONS):
        if p.word(i) == ">" and any(_opens_template(p, j) for j in range(max(1, i - 16), i)):
            continue
        if not _opens_template(p, i):
            yield i


def _opens_template(p: Program, index: int) -> bool:
    """Whether a `<` follows a word for templates, or stands in `name<one>(`."""
    before, one_argument = p.word(index - 1), (p.word(index + 2), p.word(index + 3)) == (">", "(")
    known = before in ("fragment", "template", "operator") or before.endswith("_cast")
    return p.word(index) == "<" and (known or one_argument)


def primary_end(p: Program, first: int) -> int:
    """Index behind the operand that begins at `first`: unary signs and casts, a name or bracket, what is appended."""
    i = first
    while p.word(i) in ("-", "+", "!", "~", "*", "&") or is_cast(p, i):
        i = p.partner[i] + 1 if p.word(i) == "(" else i + 1
    if p.word(i) == "(":
        i = p.partner.get(i, i)
    i += 1
    while True:
        if p.word(i) in ("(", "["):
            i = p.partner.get(i, i) + 1
        elif p.word(i) in (".", "->", "::"):
            i += 2
        elif p.word(i) in ("++", "--"):
            i += 1
        else:
            return i


def primary_start(p: Program, last: int) -> int:
    """Index at which the operand that ends with token `last` begins, casts and what it is appended to included."""
    i = last
    while True:
        if p.word(i) in (")", "]"):
            i = p.partner.get(i, i)
            before = p.spots[i - 1] if i else None
            glued = before is not None and (
                before.text == "]" or (before.kind is Kind.IDENTIFIER and ends_operand(p, i - 1))
            )
            if p.word(i) in ("(", "[") and glued:
                i -= 1
                continue
        if p.word(i - 1) in (".", "->", "::"):
            i -= 2
            continue
        break
    while i >= 1 and p.word(i - 1) == ")" and is_cast(p, p.partner.get(i - 1, i - 1)):
        i = p.partner[i - 1]
    return i


def term_end(p: Program, first: int) -> int:
    """Index behind the product or quotient that begins at `first`."""
    i = primary_end(p, first)
    while p.word(i) in ("*", "/", "%"):
        i = primary_end(p, i + 1)
    return i


def term_start(p: Program, last: int) -> int:
    """Index at which the product or quotient that ends with token `last` begins."""
    i = primary_start(p, last)
    while p.word(i - 1) in ("*", "/", "%") and i >= 2 and ends_operand(p, i - 2):
        i = primary_start(p, i - 2)
    return i


def is_cast(p: Program, index: int) -> bool:
    """Whether the bracket at `index` opens a cast to a type known here."""
    if p.word(index) != "(" or index not in p.partner:
        return False
    inside = [p.word(i) for i in range(index + 1, p.partner[index])]
    return bool(inside) and any(word in TYPES for word in inside) and all(w in TYPES | _QUALIFIERS for w in inside)


@dataclasses.dataclass(frozen=True)
class Loop:
    """Ranges of tokens of a `for`: [first, behind) of each part."""

    at: int  # the word `for`
    init: tuple[int, int]
    condition: tuple[int, int]
    step: tuple[int, int]


def loops(p: Program) -> Iterator[Loop]:
    for i in range(len(p.spots) - 1):
        if p.word(i) != "for" or p.word(i + 1) != "(" or i + 1 not in p.partner:
            continue
        close = p.partner[i + 1]
        ends = split(p, i + 2, close, ";")
        if len(ends) == 3:
            yield Loop(i, *ends)


def split(p: Program, first: int, behind: int, separator: str) -> list[tuple[int, int]]:
    """Parts of [first, behind) between separators outside brackets."""
    parts, start, i = [], first, first
    while i < behind:
        if p.word(i) in ("(", "[", "{") and i in p.partner:
            i = p.partner[i]
        elif p.word(i) == separator:
            parts.append((start, i))
            start = i + 1
        i += 1
    return [*parts, (start, behind)]


def calls(p: Program, *names: str) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Calls of functions: index of the name, ranges of the arguments. Definitions and prototypes are left out."""
    for i in range(len(p.spots) - 1):
        if p.word(i) in names and p.word(i + 1) == "(" and i + 1 in p.partner and p.word(i - 1) not in TYPES:
            yield i, split(p, i + 2, p.partner[i + 1], ",")


def conditions(p: Program) -> Iterator[tuple[int, int, int]]:
    """(index of `if`, first token of its condition, index of the closing bracket)."""
    for i in range(len(p.spots) - 1):
        if p.word(i) == "if" and p.word(i + 1) == "(" and i + 1 in p.partner:
            yield i, i + 2, p.partner[i + 1]


def statements(p: Program) -> Iterator[tuple[int, int]]:
    """[first, index of the semicolon) of simple statements in function bodies: no declarations, no control flow."""
    first, depth = 0, 0
    for i, spot in enumerate(p.spots):
        if spot.text == ";":
            if depth == 0 and first < i and _is_expression(p, first):
                yield first, i
            first = i + 1 if depth == 0 else first
        elif spot.text in ("{", "}", "else"):
            first = i + 1
        elif spot.text in ("(", "["):
            depth += 1
        elif spot.text in (")", "]"):
            depth -= 1
            opening = p.partner.get(i, i)
            if depth == 0 and p.word(opening - 1) in ("if", "for", "while"):
                first = i + 1


def _is_expression(p: Program, first: int) -> bool:
    word, following = p.word(first), p.spots[first + 1]
    starts = word in ("*", "(") or p.spots[first].kind is Kind.IDENTIFIER
    declares = word in TYPES | _QUALIFIERS - {"*"} or following.kind is Kind.IDENTIFIER
    control = word in ("return", "break", "continue", "using", "typedef", "goto", "struct", "template", "if", "for")
    return starts and not declares and not control


def assignment(p: Program, first: int, behind: int) -> int | None:
    """Index of the assignment operator of a statement outside brackets."""
    i = first
    while i < behind:
        if p.word(i) in ("(", "[", "{") and i in p.partner:
            i = p.partner[i]
        elif p.word(i) in ASSIGNMENTS:
            return i
        i += 1
    return None


@dataclasses.dataclass(frozen=True)
class Declared:
    """One name in a declaration of a floating type."""

    type: str  # float, float4 ...
    type_at: int  # index of the type's token
    name: str
    name_at: int
    indirect: bool  # a pointer or an array
    initial: tuple[int, int] | None  # tokens of `= value`, without the sign of equality
    alone: bool  # the only name in its declaration


def declared(p: Program) -> Iterator[Declared]:
    """Names declared with a floating type: variables, arrays, parameters."""
    for at, spot in enumerate(p.spots):
        if spot.text not in FLOATING or p.word(at - 1) == "<" or p.word(at + 1) in (")", ">", "("):
            continue
        yield from _declarators(p, at)


def _declarators(p: Program, at: int) -> Iterator[Declared]:
    i, number = at + 1, 0
    while True:
        pointer = False
        while p.word(i) in _QUALIFIERS:
            pointer |= p.word(i) in ("*", "&")
            i += 1
        if i >= len(p.spots) or p.spots[i].kind is not Kind.IDENTIFIER or p.word(i + 1) == "(":
            return
        name_at, behind = i, i + 1
        while p.word(behind) == "[" and behind in p.partner:
            pointer, behind = True, p.partner[behind] + 1
        initial = None
        if p.word(behind) == "=":
            start = behind + 1
            behind = _value_end(p, start)
            initial = (start, behind)
        more = p.word(behind) == "," and p.word(behind + 1) not in TYPES | {"const"}
        yield Declared(p.word(at), at, p.word(name_at), name_at, pointer, initial, number == 0 and not more)
        if not more:
            return
        i, number = behind + 1, number + 1


def _value_end(p: Program, first: int) -> int:
    i = first
    while i < len(p.spots) and p.word(i) not in (",", ";", ")"):
        i = p.partner[i] + 1 if p.word(i) in ("(", "[", "{") and i in p.partner else i + 1
    return i


def floating_names(p: Program) -> frozenset[str]:
    """Names that hold, or point to, floating numbers somewhere in the text."""
    return frozenset(each.name for each in declared(p))


def is_floating(p: Program, first: int, behind: int, names: frozenset[str]) -> bool:
    """Whether any token in [first, behind) is a floating literal or a name, no member's, of floating numbers."""
    return any(
        float_value(p.word(i)) is not None or (p.word(i) in names and p.word(i - 1) not in (".", "->"))
        for i in range(first, behind)
    )
