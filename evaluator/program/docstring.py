"""What a program's docstring says of it: why it is fast, and the names of its techniques."""

import ast
import dataclasses
import re

from evaluator.program.screen import parse
from evaluator.records import Limits, ProgramFault

_TECHNIQUES = re.compile(r"^[ \t]*techniques?[ \t]*:", re.IGNORECASE | re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class ProgramNotes:
    rationale: str  # the docstring without its techniques; "" where there is none
    techniques: tuple[str, ...]  # as named, in order, without repeats


def facts(text: str) -> ProgramNotes:
    """The notes in the docstring of `text`; empty ones where it has none or is not Python.

    The last paragraph that begins with "Techniques:" lists them, separated by commas, over one line or more.
    """
    try:
        docstring = ast.get_docstring(parse(text, Limits().source_bytes)) or ""
    except ProgramFault:
        docstring = ""
    starts = list(_TECHNIQUES.finditer(docstring))
    if not starts:
        return ProgramNotes(rationale=docstring.strip(), techniques=())
    listed, blank, rest = docstring[starts[-1].end() :].partition("\n\n")
    names = (" ".join(name.split()).rstrip(".") for name in listed.split(","))
    rationale = docstring[: starts[-1].start()].rstrip() + blank + rest
    return ProgramNotes(rationale=rationale.strip(), techniques=tuple(dict.fromkeys(name for name in names if name)))
