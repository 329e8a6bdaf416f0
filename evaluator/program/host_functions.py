"""Finds functions that NVRTC takes for host functions and therefore rejects, as real CuPy would.

The emulator's host compiler would accept them, so a program could pass on a CPU that no GPU compiles.
"""

from collections.abc import Collection, Iterator, Sequence

from evaluator.program.cuda_text import matching
from evaluator.program.cuda_tokens import Kind, Token, code, tokenize
from evaluator.program.cuda_vocabulary import is_type_word
from evaluator.program.source_line import program_line
from evaluator.records import Outcome, ProgramFault, Rung

_DEFAULT_DEVICE = frozenset({"-default-device", "--default-device", "--device-as-default-execution-space"})


def check(source: str, options: Collection[str], program: str) -> None:
    """Raises ProgramFault `compile_error` for a function definition that is certainly not for the device."""
    if _DEFAULT_DEVICE & set(options):
        return
    for name in _host_functions(code(tokenize(source))):
        message = f"NVRTC compiles no host functions: write __device__ before the function {name.text}"
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message, program_line(program, source, name.line))


def _host_functions(body: Sequence[Token]) -> Iterator[Token]:
    """Names of function definitions at file scope whose heads hold types alone: no execution space and no macro."""
    start = i = 0
    while i < len(body):
        text = body[i].text
        if text in (";", "}"):
            start = i + 1
        elif text == "{":
            end = matching(body, i, limit=len(body))
            name = _defined_name(body[start:i])
            if name is not None:
                yield name
            i, start = end, end + 1
        i += 1


def _defined_name(head: Sequence[Token]) -> Token | None:
    """The function's name in `head`, the tokens before a body, if it is plain `type name(parameters)`."""
    opening = next((i for i, token in enumerate(head) if token.text == "("), None)
    if opening is None or opening < 2 or matching(head, opening) != len(head) - 1:
        return None
    *types, name = head[:opening]
    if name.kind is not Kind.IDENTIFIER or not all(is_type_word(token.text) for token in types):
        return None
    return name
