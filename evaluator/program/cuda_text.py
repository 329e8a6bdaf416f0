"""Facts about CUDA C++ text that need no compiler: its kernels and their parameters."""

import dataclasses
from collections.abc import Sequence

from evaluator.program.cuda_tokens import Kind, Token, code, tokenize

# Bounds that keep hostile text from costing quadratic time; honest declarations are far shorter.
MAX_KERNELS = 256
MAX_HEAD_TOKENS = 200
MAX_LIST_TOKENS = 4_000


@dataclasses.dataclass(frozen=True)
class Parameter:
    type: str  # as written, one space between tokens, for example "const float *"
    name: str  # "" where it has none


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    parameters: tuple[Parameter, ...]
    line: int  # of its name in the source, 1-based
    extern_c: bool  # has a C name, so that it is found without a name expression
    template: bool


def kernels(source: str) -> tuple[Kernel, ...]:
    """The kernels of `source`. Macros are not expanded: a kernel made by one is missed."""
    return _kernels(code(tokenize(source)))


# Identifiers followed by parentheses that belong to a declaration but do not name the function.
_QUALIFIERS_WITH_ARGUMENTS = frozenset(
    {"__launch_bounds__", "__attribute__", "__align__", "alignas", "decltype", "__cluster_dims__", "__maxnreg__"}
)
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")


def _kernels(body: Sequence[Token]) -> tuple[Kernel, ...]:
    found: dict[tuple[str, int], Kernel] = {}
    in_c_block = _extern_c_blocks(body)
    marks = [i for i, token in enumerate(body) if token.text == "__global__"]
    for i in marks[:MAX_KERNELS]:
        name_at = _function_name(body, i + 1)
        if name_at is None:
            continue
        end = matching(body, name_at + 1)
        head = _declaration_head(body, i)
        parameters = _parameters(body[name_at + 2 : end])
        key = (body[name_at].text, len(parameters))
        declared = key in found and found[key].extern_c  # a definition has the linkage of its declaration
        found[key] = Kernel(
            name=body[name_at].text,
            parameters=parameters,
            line=body[name_at].line,
            extern_c=declared or in_c_block[i] or any(t.text == "extern" for t in head),
            template=any(t.text == "template" for t in head),
        )
    return tuple(found.values())


def _function_name(body: Sequence[Token], start: int) -> int | None:
    """Index of the identifier before the parameter list of a declaration."""
    i = start
    while i + 1 < min(len(body), start + MAX_HEAD_TOKENS) and body[i].text not in (";", "{", "}"):
        if body[i].kind is Kind.IDENTIFIER and body[i + 1].text == "(":
            if body[i].text not in _QUALIFIERS_WITH_ARGUMENTS:
                return i
            i = matching(body, i + 1)
        i += 1
    return None


def _declaration_head(body: Sequence[Token], at: int) -> Sequence[Token]:
    """Tokens between the end of the previous declaration and `at`."""
    start = at
    while start > max(0, at - MAX_HEAD_TOKENS) and body[start - 1].text not in (";", "}", "{"):
        start -= 1
    return body[start:at]


def _extern_c_blocks(body: Sequence[Token]) -> list[bool]:
    """For each token, whether an `extern "C" { ... }` block encloses it."""
    inside: list[bool] = []
    stack: list[bool] = []
    depth = 0  # how many of the open blocks are extern "C"
    for i, token in enumerate(body):
        inside.append(depth > 0)
        if token.text == "{":
            stack.append(i >= 2 and body[i - 1].text == '"C"' and body[i - 2].text == "extern")
            depth += stack[-1]
        elif token.text == "}" and stack:
            depth -= stack.pop()
    return inside


def matching(body: Sequence[Token], opening: int, limit: int = MAX_LIST_TOKENS) -> int:
    """Index of the bracket that closes the one at `opening`; where none does within `limit`, the last looked at."""
    depth = 0
    end = min(len(body), opening + limit)
    for i in range(opening, end):
        if body[i].text in _OPEN:
            depth += 1
        elif body[i].text in _CLOSE:
            depth -= 1
            if depth == 0:
                return i
    return end - 1


def _parameters(tokens: Sequence[Token]) -> tuple[Parameter, ...]:
    groups: list[list[Token]] = [[]]
    depth = angle = 0
    for token in tokens:
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        angle += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
        if token.text == "," and depth == 0 and angle <= 0:
            groups.append([])
        else:
            groups[-1].append(token)
    if len(groups) == 1 and [token.text for token in groups[0]] in ([], ["void"]):
        return ()
    return tuple(_parameter(group) for group in groups)


_TYPE_WORDS = frozenset(
    "const volatile unsigned signed int long short char float double bool half void __restrict__ restrict".split()  # noqa: SIM905
)


def _parameter(tokens: Sequence[Token]) -> Parameter:
    texts = [token.text for token in tokens]
    if "=" in texts:
        tokens = tokens[: texts.index("=")]
    name = ""
    kept = list(tokens)
    for i in range(len(kept) - 1, -1, -1):  # the last identifier outside an array extent
        if kept[i].kind is Kind.IDENTIFIER and (i + 1 == len(kept) or kept[i + 1].text == "["):
            if kept[i].text not in _TYPE_WORDS and i > 0:
                name = kept[i].text
                del kept[i]
            break
    return Parameter(type=" ".join(token.text for token in kept), name=name)
