"""Finds the one program in a completion: the text between its only ```python fence and the fence's end."""

import dataclasses
import re

from evaluator.records import Outcome, ProgramFault, Rung

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\r\n]*)\Z")


@dataclasses.dataclass(frozen=True)
class _Block:
    language: str
    lines: list[str]
    line: int  # of the opening fence, 1-based
    closed: bool


def extract(completion: str) -> str:
    """The program in `completion`, with LF line ends.

    Fences follow CommonMark: they begin a line and end at a line of at least as many of the same character. Fences of
    other languages are passed over. Raises ProgramFault `no_program` where there is no python fence, more than one,
    or one that never ends (a completion cut at its token limit).
    """
    blocks = [block for block in _blocks(completion) if block.language == "python"]
    if not blocks:
        raise _no_program("no ```python fence found; the completion must end with exactly one")
    if len(blocks) > 1:
        lines = ", ".join(str(block.line) for block in blocks[:8]) + (", ..." if len(blocks) > 8 else "")
        raise _no_program(f"{len(blocks)} ```python fences found, on lines {lines}; expected exactly one")
    block = blocks[0]
    if not block.closed:
        raise _no_program(f"the ```python fence on line {block.line} never ends; the completion was cut short")
    if not any(line.strip() for line in block.lines):
        raise _no_program(f"the ```python fence on line {block.line} is empty")
    return "\n".join(block.lines) + "\n"


def _blocks(completion: str) -> list[_Block]:
    """All fenced blocks of a Markdown text, in order."""
    blocks: list[_Block] = []
    marker, language, start, body = "", "", 0, list[str]()
    for number, line in enumerate(completion.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        fence = _FENCE.match(line)
        if not marker:
            if fence:
                marker, start, body = fence[1], number, []
                language = fence[2].split()[0].lower() if fence[2].strip() else ""
        elif fence and not fence[2].strip() and fence[1].startswith(marker):
            blocks.append(_Block(language=language, lines=body, line=start, closed=True))
            marker = ""
        else:
            body.append(line)
    if marker:
        blocks.append(_Block(language=language, lines=body, line=start, closed=False))
    return blocks


def _no_program(message: str) -> ProgramFault:
    return ProgramFault(Outcome.NO_PROGRAM, Rung.EXTRACT, message)
