"""A correct program as the kinds of fault see it: its text, its Python tree, and its CUDA tokens with their places."""

import ast
import bisect
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence

from evaluator.program.cuda_tokens import Kind, Token, code, tokenize

_SKIPPED = re.compile(r"(?:[ \t\f\v\r\n]|//[^\n]*|/\*.*?\*/|\\[ \t\f\v]*\n)*", re.DOTALL)
_BRACKETS = {")": "(", "]": "[", "}": "{"}


@dataclasses.dataclass(frozen=True, slots=True)
class Spot:
    """A CUDA token and where it stands in the program file."""

    kind: Kind
    text: str
    start: int  # offset in the file, in characters
    end: int


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """One change of a program's text: what stands in [start, end) is replaced."""

    start: int
    end: int
    replacement: str


@dataclasses.dataclass(frozen=True)
class Program:
    """Text of a program, read once. ValueError where the text is no Python."""

    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except SyntaxError as error:
            raise ValueError(f"not Python: {error.msg}, line {error.lineno}") from error

    @functools.cached_property
    def spots(self) -> tuple[Spot, ...]:
        """CUDA tokens outside preprocessor lines, of every string that holds a kernel as it stands in the file."""
        return tuple(spot for value, start in self._cuda_strings() for spot in _located(value, start))

    @functools.cached_property
    def partner(self) -> Mapping[int, int]:
        """For the index of each bracket among the spots, the index of the one that matches it."""
        found: dict[int, int] = {}
        stack: list[int] = []
        for index, spot in enumerate(self.spots):
            if spot.text in _BRACKETS.values():
                stack.append(index)
            elif spot.text in _BRACKETS and stack and self.spots[stack[-1]].text == _BRACKETS[spot.text]:
                found[index] = stack.pop()
                found[found[index]] = index
        return found

    def word(self, index: int) -> str:
        """Text of the token at `index`; "" outside."""
        return self.spots[index].text if 0 <= index < len(self.spots) else ""

    def cuda(self, first: int, behind: int) -> str:
        """The file's text from token `first` up to the one before `behind`, or the last."""
        behind = min(behind, len(self.spots))  # an operand may be cut off by the end of the text
        return self.text[self.spots[first].start : self.spots[behind - 1].end] if first < behind else ""

    def edit(self, first: int, behind: int, replacement: str) -> Edit:
        """Replaces the tokens from `first` up to the one before `behind`, or the last."""
        behind = min(behind, len(self.spots))
        return Edit(self.spots[first].start, self.spots[behind - 1].end, replacement)

    def place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Offsets of a Python node in the file."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def python(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.place(node)
        return self.text[start:end]

    def edit_python(self, node: ast.expr | ast.stmt, replacement: str) -> Edit:
        return Edit(*self.place(node), replacement)

    def line(self, offset: int) -> int:
        """The file's line that holds a character, 1-based."""
        return bisect.bisect_right(self._lines, offset)

    @functools.cached_property
    def _lines(self) -> list[int]:
        """Offset of the first character of each line."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def _offset(self, lineno: int, column: int) -> int:
        """Python counts columns in bytes of UTF-8."""
        start = self._lines[lineno - 1]
        line = self.text[start:].split("\n", 1)[0]
        return start + len(line.encode()[:column].decode())

    def _cuda_strings(self) -> Iterator[tuple[str, int]]:
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or "__global__" not in node.value:
                continue
            start, end = self.place(node)
            inside = self.text.find(node.value, start, end)
            if inside >= 0:  # else it is written with escapes, and its tokens stand nowhere in the file
                yield node.value, inside


def _located(source: str, base: int) -> Iterator[Spot]:
    """The code tokens of one string with their places. ValueError where a line is spliced within a token."""
    tokens = tokenize(source)
    kept = {id(token) for token in code(tokens)}
    position = 0
    for token in tokens:
        if token.kind is Kind.NEWLINE:
            continue
        position = _behind_blanks(source, position)
        if not source.startswith(token.text, position):
            raise ValueError(
                f"the token {token.text!r} in line {token.line} of the CUDA text is spliced over two lines"
            )
        if id(token) in kept:
            yield Spot(token.kind, token.text, base + position, base + position + len(token.text))
        position += len(token.text)


def _behind_blanks(source: str, position: int) -> int:
    match = _SKIPPED.match(source, position)
    assert match is not None
    return match.end()


def texts(tokens: Sequence[Token | Spot]) -> list[str]:
    return [token.text for token in tokens]
