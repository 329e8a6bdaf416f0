"""Words of CUDA text that belong to compilers: what a text must leave as it is, and may not ask for.

The emulator compiles CUDA text with a host compiler. A text that redefines the language, or finds out who compiles it,
would mean one thing there and another on a GPU.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from evaluator.program.cuda_tokens import Kind, Token
from evaluator.program.cuda_vocabulary import is_keyword

Finding = tuple[int, str]  # line of the source, reason

_BUILT_IN_VARIABLES = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_SHIMS_MACROS = frozenset({"malloc", "free"})  # macros on the emulator, functions on a device
_CONDITIONALS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"})
# Reserved names that a text may ask for, and those that it may say of all that look like a predefined macro.
_ASKED_FOR = re.compile(r"__(CUDA\w*|NVCC__|cplusplus)")
_MACRO = re.compile(r"__[A-Z][A-Z0-9_]*__")
_MACROS = re.compile(r"__(CUDA\w*|NVCC__|LINE__|FILE__|VA_ARGS__|VA_OPT__|FUNCTION__)")
_BUILT_INS = frozenset(
    """__builtin_assume __builtin_assume_aligned __builtin_expect __builtin_unreachable __builtin_align__ __builtin_inf
    __builtin_inff __builtin_nan __builtin_nanf __builtin_huge_val __builtin_huge_valf""".split()  # noqa: SIM905
)
_HOST_TYPES = re.compile(r"__float(80|128)|__ibm128|_Float\d+x?|_Decimal\d+|_Complex|__complex(__)?|_Imaginary|__int20")
_DETECTORS = re.compile(r"__has_\w+|__is_identifier")


def directive_findings(line: Sequence[Token]) -> Iterator[Finding]:
    """What is wrong with one preprocessor line: `#define` of the language's words, questions about the compiler."""
    name, at = line[0].text, line[0].line
    if name in ("define", "undef") and len(line) > 1 and _is_the_languages(line[1].text):
        yield at, f"#{name} {line[1].text[:40]}: a word of the language cannot be given another meaning"
    elif name in _CONDITIONALS:
        for token in line[1:]:
            if token.kind is Kind.IDENTIFIER and _tells_compilers_apart(token.text):
                yield token.line, f"#{name} {token.text[:40]}: compilers differ in it; write what holds on a GPU"


def _is_the_languages(name: str) -> bool:
    """Whether C++ or CUDA gives the name a meaning: keywords, names with two underscores, built-in variables."""
    return is_keyword(name) or name.startswith("__") or name in _BUILT_IN_VARIABLES


def _tells_compilers_apart(name: str) -> bool:
    reserved = name.startswith("__") or re.match("_[A-Z]", name) is not None
    return (reserved and not _ASKED_FOR.fullmatch(name)) or name in _BUILT_IN_VARIABLES | _SHIMS_MACROS


def word_findings(tokens: Sequence[Token]) -> Iterator[Finding]:
    """Names and types of one compiler or another in the text."""
    for token, following in itertools.pairwise([*tokens, Token(Kind.NEWLINE, "\n", 0)]):
        if token.kind is not Kind.IDENTIFIER:
            continue
        shown = token.text[:40]
        if _MACRO.fullmatch(token.text) and not _MACROS.fullmatch(token.text):
            yield token.line, f"`{shown}`: compilers differ in it"
        elif token.text.startswith("__builtin_") and token.text not in _BUILT_INS:
            yield token.line, f"`{shown}`: a compiler's own; write CUDA's function"
        elif _DETECTORS.fullmatch(token.text):
            yield token.line, f"`{shown}`: what a compiler knows differs from the host to a GPU"
        elif _HOST_TYPES.fullmatch(token.text) or (token.text, following.text) == ("long", "double"):
            yield token.line, f"`{shown}`: a type that no GPU has; use float or double"
        elif (token.text, following.text) == ("goto", "*"):
            yield token.line, "a computed goto; not part of CUDA C++"
