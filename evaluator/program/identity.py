"""What makes two programs the same: the hash of the text, and the stream of tokens that renaming does not change."""

import ast
import hashlib
import io
import keyword
import tokenize
import warnings
from collections.abc import Iterator, Sequence

from evaluator.program import cuda_text, cuda_tokens, cuda_vocabulary, surface
from evaluator.program.cuda_tokens import Kind

_PYTHON_KEPT = surface.BUILTINS | {"cp", "cupy", "math", "lib", "evaluator", "forward"}
_LAYOUT = {tokenize.NEWLINE: "<newline>", tokenize.INDENT: "<indent>", tokenize.DEDENT: "<dedent>"}
_SKIPPED = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER})


def sha256(text: str) -> str:
    """Hex digest of the program's text with LF line ends: the identity under which verdicts are stored."""
    return hashlib.sha256(text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass")).hexdigest()


def token_stream(text: str) -> str:
    """The program as tokens separated by spaces; two programs with equal streams are copies of one another.

    Comments, docstrings and layout are out. Identifiers are numbered in order of appearance, Python's as `p<i>` and
    those of the CUDA text in strings as `c<i>`; names of the language and of CuPy and CUDA stay, and so do numbers.
    """
    names = _Names()
    return " ".join(_python_stream(text, names))


class _Names:
    """Numbers given to identifiers so far, per language."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {"p": {}, "c": {}}

    def number(self, language: str, name: str) -> str:
        known = self._numbers[language]
        return f"{language}{known.setdefault(name, len(known))}"


def _python_stream(text: str, names: _Names) -> Iterator[str]:
    tokens = _python_tokens(text)
    if tokens is None:  # not Python: still comparable, as plain tokens
        yield from _cuda_stream(cuda_tokens.tokenize(text), frozenset(), names)
        return
    strings = [_string_value(token.string) for token in tokens if token.type == tokenize.STRING]
    defined = frozenset().union(*map(_defined, strings))
    depth = 0
    for i, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.string, 0) if token.type == tokenize.OP else 0
        if token.type == tokenize.STRING:
            yield '"'
            yield from _cuda_stream(cuda_tokens.tokenize(_string_value(token.string)), defined, names)
            yield '"'
        elif token.type in _LAYOUT:
            yield _LAYOUT[token.type]
        elif token.type == tokenize.NAME and not _is_kept(tokens, i, depth > 0):
            yield names.number("p", token.string)
        else:
            yield token.string


def _defined(cuda: str) -> frozenset[str]:
    """Functions of a CUDA text, its kernels among them, whatever stands between `__global__` and their names."""
    kernels = (kernel.name for kernel in cuda_text.kernels(cuda))
    return cuda_vocabulary.defined_functions(cuda_tokens.tokenize(cuda)) | frozenset(kernels)


def _without_docstrings(tokens: Sequence[tokenize.TokenInfo]) -> list[tokenize.TokenInfo]:
    """Strings that are statements of their own go, with the ends of their lines."""
    kept: list[tokenize.TokenInfo] = []
    skip = False
    for i, token in enumerate(tokens):
        starts = not kept or kept[-1].type in _LAYOUT
        ends = i + 1 == len(tokens) or tokens[i + 1].type == tokenize.NEWLINE
        if not skip and not (token.type == tokenize.STRING and starts and ends):
            kept.append(token)
        skip = not skip and token.type == tokenize.STRING and starts and ends
    return kept


def _python_tokens(text: str) -> list[tokenize.TokenInfo] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            everything = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return _without_docstrings([token for token in everything if token.type not in _SKIPPED])


def _is_kept(tokens: Sequence[tokenize.TokenInfo], i: int, in_call: bool) -> bool:
    name = tokens[i].string
    after_dot = i > 0 and tokens[i - 1].string == "."
    argument = in_call and i + 1 < len(tokens) and tokens[i + 1].string == "=" and name in surface.ARGUMENTS
    return after_dot or argument or keyword.iskeyword(name) or name in _PYTHON_KEPT


def _string_value(literal: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError):
        return literal
    return value if isinstance(value, str) else literal


def _cuda_stream(tokens: Sequence[cuda_tokens.Token], defined: frozenset[str], names: _Names) -> Iterator[str]:
    kept_tokens = [token for token in tokens if token.kind is not Kind.NEWLINE]
    for i, token in enumerate(kept_tokens):
        before = kept_tokens[i - 1].text if i else ""
        after = kept_tokens[i + 1].text if i + 1 < len(kept_tokens) else ""
        if token.kind is not Kind.IDENTIFIER or cuda_vocabulary.is_kept(token.text, before, after, defined):
            yield token.text
        else:
            yield names.number("c", token.text)
