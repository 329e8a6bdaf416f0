"""Tokenizer of CUDA C++: comments out, lines spliced, strings kept whole. It never fails; what it cannot read is OTHER.

It does not expand macros, so what is found with it is a hint or a reason to refuse, never proof that text is harmless.
"""

import bisect
import dataclasses
import enum
import re
from collections.abc import Sequence


class Kind(enum.Enum):
    IDENTIFIER = enum.auto()
    NUMBER = enum.auto()
    STRING = enum.auto()  # with quotes and prefix
    RAW_STRING = enum.auto()  # the rest of the line: device code has no use for raw strings, so they are not read
    CHARACTER = enum.auto()
    PUNCTUATION = enum.auto()
    NEWLINE = enum.auto()  # end of a logical line, which is where a directive ends
    OTHER = enum.auto()  # a quote or comment without its end, a stray byte


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    line: int  # of the source, 1-based, counted before lines are spliced


_SPLICE = re.compile(r"\\[ \t\f\v]*\n")
_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\f\v\r]+|//[^\n]*|/\*.*?\*/)
  | (?P<NEWLINE>\n)
  | (?P<RAW_STRING>(?:u8|[uUL])?R"[^\n]*)
  | (?P<STRING>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<CHARACTER>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
  | (?P<IDENTIFIER>[^\W\d]\w*)
  | (?P<NUMBER>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<OTHER>["'][^\n]*|/\*.*)
  | (?P<PUNCTUATION>%:%:|%:|\#\#|\#|<<<|>>>|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^=<>!]=|
      [-+*/%&|^=<>!~?:;,.(){}\[\]@$`\\])
  | (?P<STRAY>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(source: str) -> list[Token]:
    """All tokens of `source`, comments and spaces left out."""
    text, splices = _splice(source.replace("\r\n", "\n"))
    tokens: list[Token] = []
    line, counted = 1, 0  # physical newlines before `counted`, without the spliced ones
    for match in _TOKEN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if match.lastgroup == "skip":
            continue
        kind = Kind.OTHER if match.lastgroup == "STRAY" else Kind[str(match.lastgroup)]
        token_line = line + bisect.bisect_right(splices, match.start())
        tokens.append(Token(kind=kind, text=match.group(), line=token_line))
    return tokens


def _splice(source: str) -> tuple[str, list[int]]:
    """`source` with backslash-newlines removed, and where they were in the result."""
    parts, positions, length, end = [], [], 0, 0
    for match in _SPLICE.finditer(source):
        parts.append(source[end : match.start()])
        length += match.start() - end
        positions.append(length)
        end = match.end()
    parts.append(source[end:])
    return "".join(parts), positions


def directives(tokens: Sequence[Token]) -> list[list[Token]]:
    """The preprocessor lines: for each, the tokens after its `#` (or its digraph `%:`)."""
    found: list[list[Token]] = []
    line: list[Token] = []
    for token in [*tokens, Token(Kind.NEWLINE, "\n", 0)]:
        if token.kind is not Kind.NEWLINE:
            line.append(token)
            continue
        if line and line[0].text in ("#", "%:"):
            found.append(line[1:] or line)
        line = []
    return found


def code(tokens: Sequence[Token]) -> list[Token]:
    """The tokens outside preprocessor lines, newlines left out."""
    kept: list[Token] = []
    at_start, in_directive = True, False
    for token in tokens:
        if token.kind is Kind.NEWLINE:
            at_start, in_directive = True, False
            continue
        if at_start and token.text in ("#", "%:"):
            in_directive = True
        at_start = False
        if not in_directive:
            kept.append(token)
    return kept
