"""Which identifiers of CUDA text belong to the language and its libraries, and which are the author's own."""

import re
from collections.abc import Sequence

from evaluator.program.cuda_tokens import Kind, Token

_KEYWORDS = frozenset(
    """alignas alignof and asm auto bool break case catch char class const const_cast constexpr continue
    decltype default define delete do double dynamic_cast elif else endif enum error explicit extern false float
    for friend goto if ifdef ifndef include inline int long mutable namespace new noexcept not nullptr operator
    or override pragma private protected public reinterpret_cast register return short signed sizeof static
    static_assert static_cast struct switch template this throw true try typedef typename undef union unroll
    unsigned using virtual void volatile while""".split()  # noqa: SIM905
)
# Of these, the words that mean something in directives or in some places only.
_PREPROCESSOR = frozenset(
    "define elif endif error ifdef ifndef include pragma undef unroll override and or not".split()  # noqa: SIM905
)
# Words before a name that do not declare it.
_NOT_TYPES = frozenset({"return", "else", "do", "case", "goto", "new", "delete", "throw", "operator", "sizeof", "not"})
_TYPES = re.compile(
    r"(u?(char|short|int|long|longlong)|float|double)[1-4]|dim3|half2?|nv_bfloat16[2]?|u?int(8|16|32|64)_t"
    r"|size_t|ptrdiff_t|uintptr_t|intptr_t|uint|uchar|ushort|ulong|clock_t|cudaTextureObject_t"
)
_CONSTANTS = re.compile(
    r"threadIdx|blockIdx|blockDim|gridDim|warpSize|INFINITY|NAN|HUGE_VALF?|M_[A-Z0-9_]+|CUDART_\w+"
    r"|(FLT|DBL|INT|UINT|LONG|ULONG|LLONG|ULLONG|CHAR|UCHAR|SHRT|USHRT|INT(8|16|32|64)|UINT(8|16|32|64)|SIZE)_[A-Z]+"
    r"|fragment|matrix_a|matrix_b|accumulator|row_major|col_major|mem_row_major|mem_col_major"
    r"|cooperative_groups|nvcuda|wmma|cub|thrust|std|cuda"
)
_COMPONENTS = frozenset("xyzw")


def is_keyword(name: str) -> bool:
    """Whether C++ itself gives the name a meaning; words of the preprocessor are no keywords."""
    return name in _KEYWORDS - _PREPROCESSOR


def defined_functions(tokens: Sequence[Token]) -> frozenset[str]:
    """Functions, function-like macros and constructed variables that the text itself defines."""
    found = set()
    depth = 0
    body = [token for token in tokens if token.kind is not Kind.NEWLINE]
    for i in range(1, len(body) - 1):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(body[i - 1].text, 0)
        if body[i].kind is not Kind.IDENTIFIER or body[i + 1].text != "(":
            continue
        before = body[i - 1]
        declared = before.kind is Kind.IDENTIFIER and before.text not in _NOT_TYPES
        if declared or (depth == 0 and before.text in ("*", "&", ">")):
            found.add(body[i].text)
    return frozenset(found)


def is_kept(name: str, before: str, after: str, defined: frozenset[str]) -> bool:
    """Whether the identifier between the tokens `before` and `after` keeps its name when a program is renamed."""
    if name in _KEYWORDS or name.startswith("__") or _TYPES.fullmatch(name) or _CONSTANTS.fullmatch(name):
        return True
    if before in (".", "->"):
        return (name in _COMPONENTS and after != "(") or (after == "(" and name not in defined)
    if before == "::" or after == "::":
        return name not in defined
    return after == "(" and name not in defined
