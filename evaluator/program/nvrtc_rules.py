"""Finds what NVRTC rejects although a host compiler accepts it, so that no program passes on a CPU alone."""

import itertools
import re

from evaluator.program.cuda_text import kernels
from evaluator.program.cuda_tokens import Kind, Token, code, directives, tokenize
from evaluator.program.source_line import program_line
from evaluator.records import Outcome, ProgramFault, Rung

# Names that NVRTC knows only where one of these headers is included; host headers define them everywhere.
_NEED_A_HEADER = (
    (
        re.compile(r"INFINITY|NAN|HUGE_VALF?|M_[A-Z0-9_]+"),
        ("math.h", "cmath"),
        "write a value such as __int_as_float(0x7f800000)",
    ),
    (re.compile(r"(FLT|DBL)_[A-Z_0-9]+"), ("float.h", "cfloat"), "write its value"),
    (
        re.compile(r"(CHAR|SCHAR|UCHAR|SHRT|USHRT|U?INT|U?LONG|U?LLONG)_(MAX|MIN|BIT)"),
        ("limits.h", "climits"),
        "write its value",
    ),
    (re.compile(r"u?int(8|16|32|64|ptr)_t"), ("stdint.h", "cstdint"), "write a type such as unsigned int"),
)
# CUDA's own functions of C linkage that no host library has, and its namespace: a kernel cannot take their name.
_TAKEN = frozenset(
    """std norm rnorm norm3d rnorm3d norm4d rnorm4d normf rnormf norm3df norm4df rcbrt rcbrtf sinpi cospi sincospi erfcx
    erfinv erfcinv normcdf normcdfinv rsqrt rsqrtf exp10 exp10f""".split()  # noqa: SIM905
)


def check(source: str, program: str) -> None:
    """Raises ProgramFault `compile_error` for the first such thing. Macros are not expanded."""
    tokens = tokenize(source)
    for kernel in kernels(source):
        if kernel.extern_c and kernel.name in _TAKEN:
            message = f"{kernel.name} is a name of CUDA's own: give the kernel another name"
            _refuse(message, source, program, kernel.line)
    lines = directives(tokens)
    included = {"".join(token.text for token in line[1:]).strip('<>"') for line in lines if line[0].text == "include"}
    defined = {line[1].text for line in lines if line[0].text == "define" and len(line) > 1}
    end = Token(Kind.NEWLINE, "", 0)
    for token, following in itertools.pairwise([*code(tokens), end]):
        if token.kind is Kind.IDENTIFIER and token.text not in defined:
            _check_name(token, included, source, program)
            if token.text == "std" and following.text == "::":
                message = "NVRTC has no standard library: write the function's plain name (fmaxf, memcpy), or the value"
                _refuse(message, source, program, token.line)


def _check_name(token: Token, included: set[str], source: str, program: str) -> None:
    for names, headers, instead in _NEED_A_HEADER:
        if names.fullmatch(token.text) and not included & {*headers, "cuda_fp16.h", "cuda_bf16.h"}:
            message = f"NVRTC does not know {token.text}: #include <{headers[0]}>, or {instead}"
            _refuse(message, source, program, token.line)


def _refuse(message: str, source: str, program: str, line: int) -> None:
    raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message, program_line(program, source, line))
