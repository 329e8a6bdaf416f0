"""CUDA C++ text to text for the host compiler: what macros cannot express is rewritten here, line by line."""

import dataclasses
import re
from collections.abc import Iterator

from evaluator.program.cuda_screen import HEADERS
from evaluator.program.cuda_tokens import directives, tokenize
from evaluator.program.emulator_gaps import gaps
from evaluator.records import Outcome, ProgramFault, Rung

_TOKEN = re.compile(
    r"""//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z)|R"(?P<mark>[^()\s\\"]{0,16})\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL | re.VERBOSE,
)
_INCLUDE = re.compile(r"^[ \t]*\#[ \t]*include\b(?P<rest>[^\n]*)$", re.MULTILINE)
_STATEMENT = re.compile(r"[^;{}]*;")  # the words before a semicolon, back to the brace or semicolon before
_LONGEST_DECLARATION = 400  # characters of a __shared__ variable's; the patterns below are for short texts alone
_DYNAMIC_SHARED = re.compile(
    r"\bextern\b(?P<before>[^;{}()]*(?:\([^()]*\)[^;{}()]*)*?)\b__shared__\b(?P<after>[^;{}]*?)"
    r"\b(?P<name>\w+)\s*\[\s*\](?P<rest>(?:\s*\[[^\];]*\])*)\s*;"
)
_ALIGNMENT = re.compile(r"\b(?:__align__|alignas|__builtin_align__)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)")


@dataclasses.dataclass(frozen=True)
class Lowered:
    """One module's text, ready to stand inside a namespace."""

    text: str  # same lines as the CUDA text
    includes: tuple[str, ...]  # to stand before it, outside the namespace
    macros: tuple[str, ...]  # defined by it, to be undefined behind it


def without_literals(text: str) -> str:
    """`text` with comments and the contents of string and character literals as spaces; same length and lines."""

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        if token[0] in "\"'" and len(token) >= 2:
            return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _check_supported(text: str) -> None:
    for gap in gaps(text):
        message = f"the CPU emulator cannot run {gap.what}: kernel text line {gap.line}"
        raise ProgramFault(Outcome.UNSUPPORTED, Rung.COMPILE, message)


def _shared_declarations(code: str) -> Iterator[tuple[int, str]]:
    """(position, text) of every statement that declares __shared__ variables. ProgramFault where one is too long."""
    for match in _STATEMENT.finditer(code):
        at = match.group().find("__shared__")
        if at < 0:
            continue
        if len(match.group()) > _LONGEST_DECLARATION:
            line = _line(code, match.start() + at)
            message = f"kernel text line {line}: a __shared__ declaration of over {_LONGEST_DECLARATION} characters"
            raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
        yield match.start(), match.group()


def _check_shared_declarations(code: str) -> None:
    for position, text in _shared_declarations(code):
        if match := re.search(r"\b__shared__\b[^;{}()]*?(?<![<>=!])=(?!=)", text):
            line = _line(code, position + match.end())
            message = f"kernel text line {line}: a __shared__ variable cannot have an initial value"
            raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)


def _include(rest: str, line: int) -> str:
    match = re.match(r"""\s*(?:<([^>\n]+)>|"([^"\n]+)")\s*(?://.*|/\*.*)?$""", rest)
    name = (match.group(1) or match.group(2)).strip() if match else rest.strip()
    if match and name in HEADERS:
        return f"#include <{name}>"
    message = f"kernel text line {line}: cannot include {name!r}; there are {', '.join(sorted(HEADERS))}"
    raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)


def _pointer_to_dynamic_shared(match: re.Match[str]) -> str:
    """The declaration that replaces `extern __shared__ T name[];`."""
    specifiers = _ALIGNMENT.sub(" ", match["before"] + " " + match["after"])
    element = " ".join(specifiers.replace("__device__", " ").split())
    rest = match["rest"].strip()
    lines = "\n" * match.group().count("\n")
    kind = f"{element} (*){rest}" if rest else f"{element}*"
    target = f"{element} (* const {match['name']}){rest}" if rest else f"{element}* const {match['name']}"
    return f"{target} = ({kind})EMULATOR_DYNAMIC_SHARED;{lines}"


def _body_starts(code: str) -> list[tuple[int, int]]:
    """(position after the opening brace, position of the closing brace) of every outermost function body."""
    bodies, stack = [], []
    inside = 0
    for position, character in enumerate(code):
        if character == "{":
            before = code[:position].rstrip()
            is_body = inside == 0 and re.search(r"\)\s*(const|noexcept)?$", before[-40:]) is not None
            stack.append((position, is_body))
            inside += is_body
        elif character == "}" and stack:
            start, is_body = stack.pop()
            if is_body:
                inside -= 1
                bodies.append((start + 1, position))
    return bodies


def _lower_dynamic_shared(code: str) -> list[tuple[int, int, str]]:
    """Edits for dynamic shared memory; a declaration at file scope moves into the functions that use its name."""
    edits = []
    bodies = _body_starts(code)
    for position, text in _shared_declarations(code):
        match = _DYNAMIC_SHARED.search(text)
        if match is None:
            continue
        declaration = _pointer_to_dynamic_shared(match)
        begin, after = position + match.start(), position + match.end()
        if any(start <= begin < end for start, end in bodies):
            edits.append((begin, after, declaration))
            continue
        edits.append((begin, after, "\n" * match.group().count("\n")))
        use = re.compile(rf"\b{match['name']}\b")
        for start, end in bodies:
            if use.search(code, start, end):
                edits.append((start, start, " " + " ".join(declaration.split()) + " "))
    return edits


def _lower_words(text: str, code: str) -> list[tuple[int, int, str]]:
    # Kernels get internal linkage, so that they are inlined into their loop over threads. `extern` stays: without
    # it, what the text only declares would be defined.
    edits = [
        (m.start(), m.end(), 'extern "C++" {' if m[2] else "extern" + m[1])
        for m in re.finditer(r'\bextern\s*"[^"\n]*"(\s*)(\{?)', code)
        if '"C"' in text[m.start() : m.end()]
    ]
    edits += [(m.start(), m.end(), "EMULATOR_NOINLINE") for m in re.finditer(r"\b__noinline__\b", code)]
    edits += [(m.start(), m.end(), "__shared__") for m in re.finditer(r"\bstatic\s+__shared__\b", code)]
    # After `static thread_local` only the GNU spelling of an alignment is accepted.
    edits += [(m.start(1), m.end(1), "__align__") for m in re.finditer(r"\b__shared__\s+(alignas)\b", code)]
    return edits


def _join_lines(text: str) -> str:
    """`text` without line continuations, each logical line followed by the line ends that were inside it."""
    joined, logical, inside = [], [], 0
    for line in text.split("\n"):
        if line.endswith("\\"):
            logical.append(line[:-1])
            inside += 1
            continue
        joined.append("".join([*logical, line]) + "\n" * inside)
        logical, inside = [], 0
    if logical:
        joined.append("".join(logical) + "\n" * (inside - 1))
    return "\n".join(joined)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _macros(text: str) -> tuple[str, ...]:
    """Every name that the text defines, however its directive is spelled."""
    lines = directives(tokenize(text))
    return tuple(dict.fromkeys(line[1].text for line in lines if line[0].text == "define" and len(line) > 1))


def lower(text: str) -> Lowered:
    """The host compiler's form of one module. Raises ProgramFault `unsupported` or `compile_error`."""
    _check_supported(text)
    text = _join_lines(text.replace("\r\n", "\n"))
    code = without_literals(text)
    _check_shared_declarations(code)
    includes, directives = [], []
    for match in _INCLUDE.finditer(code):
        rest = text[match.start("rest") : match.end("rest")]
        includes.append(_include(rest, _line(text, match.start())))
        directives.append((match.start(), match.end(), ""))
    text = _edited(text, directives)
    text = _edited(text, _lower_dynamic_shared(without_literals(text)))
    text = _edited(text, _lower_words(text, without_literals(text)))
    return Lowered(text=text, includes=tuple(dict.fromkeys(includes)), macros=_macros(text))
