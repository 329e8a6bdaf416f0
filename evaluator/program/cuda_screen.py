"""What CUDA text may not contain: headers outside an allow-list, host-only constructs, ways around the tokenizer.

The walls are the confined compiler and the confined runner; this refuses early, with the line, what is certain.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from evaluator.program import cuda_reserved
from evaluator.program.cuda_text import MAX_KERNELS, kernels, matching
from evaluator.program.cuda_tokens import Kind, Token, directives, tokenize
from evaluator.program.source_line import program_line
from evaluator.records import Outcome, ProgramFault, Rung

HEADERS = frozenset(
    """cuda_runtime.h device_launch_parameters.h vector_types.h vector_functions.h math_constants.h
    cuda_fp16.h cuda_bf16.h cuda_fp8.h mma.h cuda_pipeline.h cuda_awbarrier.h
    cooperative_groups.h cooperative_groups/reduce.h cooperative_groups/scan.h cooperative_groups/memcpy_async.h
    cub/cub.cuh cuda/barrier cuda/pipeline cuda/atomic cuda/annotated_ptr
    stdint.h cstdint math.h cmath float.h cfloat limits.h climits""".split()  # noqa: SIM905
)
_HEADER_FAMILIES = re.compile(r"(cub/(block|warp|thread|util_[a-z]+)(/[a-z_]+)?\.cuh|cuda/std/[a-z_]+)\Z")
_DIRECTIVES = frozenset(
    "include define undef if ifdef ifndef elif elifdef elifndef else endif pragma error warning".split()  # noqa: SIM905
)
_PRAGMAS = frozenset({"unroll", "nounroll", "once", "nv_diag_suppress", "nv_diag_default", "nv_diag_warning"})
_ATTRIBUTES = frozenset({"aligned", "packed", "noinline", "always_inline", "unused", "const", "pure", "may_alias"})

# Words that mean something to a host compiler only. NVRTC would not take them either, or gives them no effect.
_HOST_WORDS = {
    "__has_include": "the headers of the machine are none of a program's business",
    "__has_embed": "files of the machine are none of a program's business",
    "_Pragma": "write #pragma unroll instead",
    "__pragma": "write #pragma unroll instead",
    "thread_local": "device code has no thread_local storage",
    "__thread": "device code has no thread-local storage",
    "constructor": "device code has no constructors that run at load",
    "destructor": "device code has no destructors that run at unload",
    "import": "C++ modules are not part of CUDA C++",
    "__import": "C++ modules are not part of CUDA C++",
}
_LONGEST_LINE = 2_000  # characters; patterns that read a line may take its square
# What a host compiler predefines and NVRTC does not: text that asks for it means another thing on a GPU.
_HOST_MACROS = re.compile(
    r"__(GNUC\w*|GNUG__|clang\w*|x86_64(__)?|amd64(__)?|aarch64__|arm\w*|linux(__)?|unix(__)?|gnu_linux__|SSE\w*|AVX\w*)"
    r"|__(FLT|DBL|LDBL|INT|UINT|LONG|SCHAR|SHRT|SIZE|CHAR|WCHAR|PTRDIFF)\w*__|_GLIBCXX\w*|_GNU_SOURCE"
)
# Names of the emulator's runtime, which shares a process with the program, and of what is added to its text for NVRTC.
_RESERVED = re.compile(r"emulator|(emulator|EMULATOR|evaluator)_\w*|__unnamed_\w*")
Finding = tuple[int, str]  # line of the source, reason


def check(source: str, program: str) -> None:
    """Raises ProgramFault `refused` for the first thing in `source` that is outside the surface."""
    for line, reason in findings(source):
        raise ProgramFault(Outcome.REFUSED, Rung.SCREEN, f"CUDA text: {reason}", program_line(program, source, line))


def check_c_names(source: str, names: Collection[str], program: str) -> None:
    """Raises ProgramFault `refused` for a kernel that is looked up by its C name but has a C++ name.

    Real CuPy would fail to find it. Kernels that macros make are not seen and left to the compiler.
    """
    if not names:
        return
    by_name: dict[str, bool] = {}
    found = kernels(source)
    for kernel in found:
        by_name[kernel.name] = by_name.get(kernel.name, False) or (kernel.extern_c and not kernel.template)
    for kernel in found:
        if kernel.name in names and not by_name[kernel.name]:
            cure = 'list it in cp.RawModule(name_expressions=...) or write extern "C" before __global__'
            message = f"kernel {kernel.name} has a C++ name, so CuPy cannot find it; {cure}"
            raise ProgramFault(Outcome.REFUSED, Rung.SCREEN, message, program_line(program, source, kernel.line))


def findings(source: str) -> Iterator[Finding]:
    """What is refused in `source`, in the order in which the checks are made."""
    if "\0" in source:
        yield source.count("\n", 0, source.index("\0")) + 1, "a NUL character"
    for trigraph, meaning in (("??/", "\\"), ("??=", "#")):
        if trigraph in source:
            line = source.count("\n", 0, source.index(trigraph)) + 1
            yield line, f"the trigraph {trigraph}, an old spelling of {meaning}"
    for number, text in enumerate(source.replace("\\\n", "").split("\n"), start=1):
        if len(text) > _LONGEST_LINE:
            yield number, f"a line of {len(text)} characters; at most {_LONGEST_LINE}"
            return  # what follows reads lines
    tokens = tokenize(source)
    if sum(token.text == "__global__" for token in tokens) > MAX_KERNELS:
        yield 1, f"more than {MAX_KERNELS} kernels in one source"
    yield from _spelling(tokens)
    for directive in directives(tokens):
        yield from _directive(directive)
        yield from cuda_reserved.directive_findings(directive)
    yield from _words(tokens)
    yield from cuda_reserved.word_findings(tokens)
    yield from _attributes([token for token in tokens if token.kind is not Kind.NEWLINE])


def _spelling(tokens: Sequence[Token]) -> Iterator[Finding]:
    for token in tokens:
        if token.kind is Kind.RAW_STRING:
            yield token.line, "a raw string; device code has no use for one"
        elif token.kind is Kind.OTHER:
            what = "a comment or quote without its end" if token.text[0] in "\"'/" else f"the character {token.text!r}"
            yield token.line, what
        elif token.kind is Kind.NUMBER and "'" in token.text:
            yield token.line, f"the digit separator in {token.text[:40]}; write the number without it"
        elif token.text in ("$", "##", "%:%:"):
            yield token.line, f"{token.text}; write names out"
        elif token.kind is Kind.STRING and (".incbin" in token.text or ".include" in token.text):
            yield token.line, "assembly that reads a file"


def _directive(line: Sequence[Token]) -> Iterator[Finding]:
    name, at = line[0].text, line[0].line
    if name in ("#", "%:"):
        return  # the null directive
    if name not in _DIRECTIVES:
        yield at, f"#{name[:40]} is not in the surface"
    elif name == "include":
        yield from _include(line)
    elif name == "pragma" and (len(line) < 2 or line[1].text not in _PRAGMAS):
        seen = line[1].text[:40] if len(line) > 1 else ""
        yield at, f"#pragma {seen}; allowed are {', '.join(sorted(_PRAGMAS))}"


def _include(line: Sequence[Token]) -> Iterator[Finding]:
    target = "".join(token.text for token in line[1:])[:80]
    if not target.startswith("<") or not target.endswith(">"):
        yield line[0].line, f"#include {target}; a header must be named in angle brackets, as <cuda_fp16.h>"
    elif target[1:-1] not in HEADERS and not _HEADER_FAMILIES.match(target[1:-1]):
        yield line[0].line, f"#include {target} is not on the allow-list ({', '.join(sorted(HEADERS))})"


def _words(tokens: Sequence[Token]) -> Iterator[Finding]:
    for token in tokens:
        if token.kind is not Kind.IDENTIFIER:
            continue
        if token.text in _HOST_WORDS:
            yield token.line, f"`{token.text}`: {_HOST_WORDS[token.text]}"
        elif _HOST_MACROS.fullmatch(token.text):
            yield token.line, f"`{token.text[:40]}`: a host compiler's, unknown to NVRTC"
        elif token.kind is Kind.IDENTIFIER and _RESERVED.fullmatch(token.text):
            yield (
                token.line,
                f"`{token.text[:40]}`: names that begin with emulator_, evaluator_ or __unnamed_ are reserved",
            )


def _attributes(body: Sequence[Token]) -> Iterator[Finding]:
    """`__attribute__((...))` and `[[gnu::...]]` outside the few that CUDA C++ shares with the host."""
    for i, token in enumerate(body):
        if token.text in ("__attribute__", "__attribute"):
            inside = body[i + 1 : matching(body, i + 1)] if i + 1 < len(body) else []
            names = [t for t in inside if t.kind is Kind.IDENTIFIER and t.text.strip("_") not in _ATTRIBUTES]
            if names:
                yield names[0].line, f"attribute `{names[0].text[:40]}` is not in the surface"
        elif token.text in ("gnu", "__gnu__") and _in_attribute(body, i):
            yield token.line, "[[gnu::...]] attributes are not in the surface"


def _in_attribute(body: Sequence[Token], at: int) -> bool:
    """Whether the identifier at `at` names the namespace of an attribute: `gnu::x`, or `using gnu:`."""
    behind = body[at + 1].text if at + 1 < len(body) else ""
    return behind == "::" or (at > 0 and body[at - 1].text == "using")
