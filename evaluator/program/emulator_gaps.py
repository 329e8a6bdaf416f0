"""What the CPU emulator cannot run although a GPU could, found in CUDA text before any compiler reads it."""

import dataclasses
import re

from evaluator.program.cuda_tokens import Kind, directives, tokenize

# Identifiers as a whole.
_WORDS = (
    (re.compile(r"asm|__asm|__asm__"), "inline PTX (asm)"),
    (re.compile(r"this_grid|grid_group|this_multi_grid|multi_grid_group"), "synchronisation of a whole grid"),
    (
        re.compile(r"this_cluster|cluster_group|__cluster_dims__|__cluster_size__|__block_size__"),
        "thread block clusters",
    ),
    (re.compile(r"CUtensorMap|cp_async_bulk\w*"), "the tensor memory accelerator (TMA)"),
    (
        re.compile(r"cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion"),
        "programmatic dependent launch",
    ),
    (
        re.compile(r"tex[123]D\w*|tex1Dfetch|surf[123]D\w+|cuda(Texture|Surface)Object_t"),
        "textures and surfaces",
    ),
    (re.compile(r"__nv_fp[864]\w*"), "8-bit and smaller floating point"),
)
# Beginnings of header names.
_HEADERS = re.compile(
    r"((cub|thrust|cute|cutlass|cuda|nv|nvshmem)/|cu(rand|blas|fft|sparse|dnn)|cuda_fp[864]|cuda_awbarrier)"
)


@dataclasses.dataclass(frozen=True)
class Gap:
    """One such thing; the cure is a GPU, so it is `unsupported` and no fault of the program."""

    what: str
    line: int  # of the source, 1-based


def gaps(source: str) -> list[Gap]:
    """All of them, in order of appearance. Comments and strings do not count; macros are not expanded."""
    tokens = tokenize(source)
    found = []
    for line in directives(tokens):
        name = "".join(token.text for token in line[1:]).strip('<>"') if line[0].text == "include" else ""
        if _HEADERS.match(name):
            found.append(Gap(f"the header {name!r}", line[0].line))
    for token in tokens:
        if token.text == "<<<":
            found.append(Gap("a launch from device code (<<<>>>)", token.line))
        elif token.kind is Kind.IDENTIFIER:
            found += [Gap(what, token.line) for pattern, what in _WORDS if pattern.fullmatch(token.text)]
    return sorted(found, key=lambda gap: gap.line)
