"""What the fuzzer does to a text, a plan or a tape: functions of a random generator and of what they change."""

import ast
import copy
import random
import re
from collections.abc import Callable
from typing import Any

Mutation = Callable[[random.Random, str], str]

_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
ODD_NUMBERS = (
    "0", "-1", "1", "2147483647", "2147483648", "4294967296", "-9223372036854775809", "18446744073709551616", "1e400",
    "nan", "9" * 5000, "0x"+"f" * 300, "1_000_000", "0.1e-400", "1j", "0b1", "1"+"0" * 30, "True", "None", "()",
)  # fmt: skip
ODD_CHARACTERS = (
    "\0", "\x1b", "\ufeff", "\u202e", "\u2028", "\x85", "\ud800", "\udcff", "\U0010ffff", "\u0301" * 40, "ﬀ", "ª",
    "𝔵", "\r", "\f", "\v", "\\\n", "`" * 4, "'''", '"""', "\\", "\t", "\u00a0", "#", "??/", "%:", "R\"(",
)  # fmt: skip
ODD_LINES = (
    "import os", "from cupy import *", "import cupy as cp", "while True: pass", "def forward(*a, **k): return a",
    "x = [0] * 10 ** 9", "y = 'a' * (1 << 40)", "z = x @ x @ x", "return forward(x)", "@cp.fuse", "lambda: 0",
    "for i in range(1 << 60): pass", "assert False, chr(0) * 99", "x[...] = x", "x = x.reshape(-1, -1)", "global x",
    "x = cp.empty((1 << 40,), dtype=cp.float32)", "x = cp.empty((-1,))", "x = cp.zeros(x.shape, dtype='O')",
    "x = x[::-1]", "x = x.T.T", "print(x)", "x.fill(float('nan'))", "cp.matmul(x, x, out=x)", "f'{x.__class__}'",
    "x = '%c' % x", "x = int('9' * 5000)", "x = 1 << (1 << 30)", "x = math.factorial(10 ** 7)", "x = str(x)",
    "k = cp.RawKernel(1, 2)", "k((1,), (1,), (k,))", "k((1 << 40,), (1 << 20,), ())", "x = [[]] * 9; x[0] = x",
    "x = cp.RawModule(code=chr(35) + 'include \"/etc/passwd\"')", "if x: pass", "x = range(1 << 62)[1 << 61]",
    "#include </dev/zero>", "#define f f f", "#if", "template <int n> struct A { A<n + 1> a; }; A<0> a;",
    "asm(\"\");", "__global__ void k() { k<<<1, 1>>>(); }", "while (1) {}", "__shared__ char big[1 << 30];",
    "int x[];", "}}}}", "{{{", "static_assert(0, \"\");", "#line 4294967295", "#error \x1b[2J",
    "_Pragma(\"GCC poison int\")", "__asm__(\"syscall\");", "extern \"C\" int system(const char*);", "*(int*)0 = 0;",
    "for (;;) __syncthreads();", "__trap();", "assert(0);", "printf(\"%s%n\", x);", "new int[1 << 30];",
    "alloca(1 << 30);", "goto x;", "__shfl_sync(0, 1, 99);", "throw 1;",
)  # fmt: skip


def _place(rng: random.Random, text: str) -> int:
    return rng.randint(0, len(text))


def delete_span(rng: random.Random, text: str) -> str:
    start = _place(rng, text)
    return text[:start] + text[start + rng.choice((1, 1, 2, 8, 64, 400)) :]


def repeat_span(rng: random.Random, text: str) -> str:
    start = _place(rng, text)
    end = start + rng.choice((1, 4, 32, 200))
    return text[:end] + text[start:end] * rng.choice((1, 2, 50)) + text[end:]


def odd_character(rng: random.Random, text: str) -> str:
    at = _place(rng, text)
    return text[:at] + rng.choice(ODD_CHARACTERS) + text[at:]


def flip_character(rng: random.Random, text: str) -> str:
    at = _place(rng, text)
    return text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x11000)))) + text[at + 1 :]


def swap_tokens(rng: random.Random, text: str) -> str:
    tokens = _TOKEN.findall(text)
    if len(tokens) < 2:
        return text
    i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


def replace_token(rng: random.Random, text: str) -> str:
    tokens = _TOKEN.findall(text)
    if not tokens:
        return text
    tokens[rng.randrange(len(tokens))] = rng.choice((*ODD_NUMBERS, rng.choice(tokens), "", "(", "]", "{", "__x__", "*"))
    return "".join(tokens)


def odd_number(rng: random.Random, text: str) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice(ODD_NUMBERS) + text[one.end() :]


def odd_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    indent = re.match(r"\s*", lines[at])[0]
    lines.insert(at, indent + rng.choice(ODD_LINES))
    return "\n".join(lines)


def move_lines(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    start, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    count = rng.choice((1, 2, 5))
    block = lines[start : start + count]
    del lines[start : start + count]
    return "\n".join(lines[:to] + block + lines[to:])


def nest_deeply(rng: random.Random, text: str) -> str:
    depth = rng.choice((50, 500, 5_000, 60_000))
    opening, closing = rng.choice(
        (("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("f(", ")"), ("x.", "x"), ("{", "}"))
    )
    at = _place(rng, text)
    bomb = opening * depth + "0" + closing * depth
    return text[:at] + rng.choice(("\n", "")) + bomb + rng.choice(("\n", "")) + text[at:]


def nest_blocks(rng: random.Random, text: str) -> str:
    depth = rng.choice((10, 99, 150))
    head = rng.choice(("if x:", "for i in x:", "def f(x):"))
    lines = [" " * level + head for level in range(depth)]
    return text + "\n" + "\n".join(lines) + "\n" + " " * depth + "pass\n"


def chain_deeply(rng: random.Random, text: str) -> str:
    count = rng.choice((100, 3_000, 20_000))
    link = rng.choice((" + x", ".T", "[0]", "()", ", x", " if x else x", " and x", " < x", " or 1", "\n+ x"))
    return text + "\ny = x" + link * count + "\n"


def long_string(rng: random.Random, text: str) -> str:
    at = _place(rng, text)
    return text[:at] + rng.choice("x*/'\"\\ \n`(<") * rng.choice((100, 10_000, 60_000)) + text[at:]


def splice(rng: random.Random, text: str) -> str:
    """The head of the text and a tail of itself from elsewhere."""
    return text[: _place(rng, text)] + text[_place(rng, text) :]


def odd_fences(rng: random.Random, text: str) -> str:
    kind = rng.choice(
        ("```", "~~~", "````", "```python", "``` python ", "```PYTHON", "   ```", "\t```", "```py\n```python")
    )
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 300))):
        lines.insert(rng.randrange(len(lines) + 1), kind)
    return "\n".join(lines)


def cut_short(rng: random.Random, text: str) -> str:
    return text[: _place(rng, text)]


def other_line_ends(rng: random.Random, text: str) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", "\x0c\n", "\u2028", "\\\n")))


def rewrite_tree(rng: random.Random, text: str) -> str:
    """A node of the syntax tree takes the place of another; text that does not parse stays as it is."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and not isinstance(node, ast.Starred)]
    holders = [(node, name) for node in ast.walk(tree) for name, value in ast.iter_fields(node) if value in nodes]
    if not holders:
        return text
    holder, name = rng.choice(holders)
    setattr(holder, name, copy.deepcopy(rng.choice(nodes)))
    try:
        return ast.unparse(tree)
    except (RecursionError, ValueError, AttributeError, TypeError, KeyError):
        return text  # a tree that is no text


TEXT: tuple[Mutation, ...] = (
    delete_span, repeat_span, odd_character, flip_character, swap_tokens, replace_token, odd_number, odd_line,
    move_lines, nest_deeply, nest_blocks, chain_deeply, long_string, splice, cut_short, other_line_ends, rewrite_tree,
)  # fmt: skip


def mutated_text(rng: random.Random, text: str, mutations: tuple[Mutation, ...] = TEXT) -> str:
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 6))):
        text = rng.choice(mutations)(rng, text)
    return text


ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 7, 64, 65, 1024, 2**31-1, 2**31, 2**32, 2**62, 2**63, -(2**63), 2**64, 10**400,
    0.5, 1e308, "", "0", "nan", "-inf", "1e999", "float32", "bfloat16", "int64", "bool", "input", "launch", "a", "\0",
    "\ud800", "x" * 300, "9" * 4999, [], {}, [[]], [0], [1, 1], [0, 0, 0], [2**40, 2**40], [-1], [1] * 40,
    {"buffer": 0}, {"buffer": 0, "offset": 0, "shape": []}, {"buffer": 99, "offset": 0, "shape": [1]}, {"int": 2**63},
    {"float": "x"}, {"scalar": "float32", "value": "1"}, {"view": {"buffer": 0, "offset": 2**62, "shape": [1]}},
)  # fmt: skip


def paths(value: Any, path: tuple = ()) -> list[tuple]:
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += paths(value[key], (*path, key))
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            found += paths(entry, (*path, i))
    return found


def other_plan(rng: random.Random, record: dict) -> dict:
    """Steps in another order, left out or doubled, and fields that most values fit: what is likely to be a plan."""
    record = copy.deepcopy(record)
    steps = record["steps"]
    for _ in range(rng.choice((0, 1, 2, 4))):
        how, at = rng.randrange(4), rng.randrange(len(steps))
        if how == 0 and len(steps) > 1:
            del steps[at]
        elif how == 1:
            steps.insert(rng.randrange(len(steps)), copy.deepcopy(steps[at]))
        elif how == 2:
            rng.shuffle(steps)
        else:
            steps[at].update(_fields(rng, steps[at]["op"]))
    return record


def _fields(rng: random.Random, op: str) -> dict:
    extents = [rng.choice((1, 2, 8, 1024)), rng.choice((1, 1, 3)), 1]
    return {
        "launch": {
            "grid": extents,
            "block": [rng.choice((1, 31, 32, 256, 300)), 1, 1],
            "shared_bytes": rng.choice((0, 4)),
        },
        "fill": {"value": rng.choice(("0", "1", "-5", "inf", "nan", "1e-40", "2147483647"))},
        "conv": {"padding": [rng.choice((0, 1, 2))] * 2, "stride": [rng.choice((1, 2, 3))] * 2},
        "attention": {"causal": rng.random() < 0.5},
    }.get(op, {"line": rng.choice((1, 2**20))})


def mutated_record(rng: random.Random, record: dict) -> Any:
    """A JSON value with fields that are replaced, removed, doubled, nudged or traded."""
    record = copy.deepcopy(record)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        places = [path for path in paths(record) if path]
        if not places:
            return record
        path = rng.choice(places)
        parent = record
        for key in path[:-1]:
            parent = parent[key]
        record = _changed(rng, record, parent, path[-1], places)
    return record


def _changed(rng: random.Random, record: Any, parent: Any, key: Any, places: list[tuple]) -> Any:
    how = rng.randrange(6)
    old = parent[key]
    if how == 0 and isinstance(parent, dict):
        del parent[key]
    elif how == 1 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(old))
    elif how == 2 and isinstance(old, int) and not isinstance(old, bool):
        parent[key] = old + rng.choice((-1, 1, old, 32, -old))
    elif how == 3:
        other = record
        for step in rng.choice(places):
            other = other[step]
        parent[key] = copy.deepcopy(other)
    elif how == 4 and isinstance(parent, dict):
        parent[rng.choice(("extra", "", "schema", "__class__"))] = old
    else:
        parent[key] = copy.deepcopy(rng.choice(ODD_VALUES))
    return record


def mutated_tape(rng: random.Random, words: list[int]) -> list[int]:
    words = list(words)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(words))
        how = rng.randrange(5)
        if how == 0:
            words[at] = rng.choice(
                (0, 1, 2, 5, 6, 7, 2**16, 2**31, 2**32, 2**40, 2**47, 2**63, 2**64 - 1, 2**64 - 4096)
            )
        elif how == 1:
            words[at] += rng.choice((-1, 1, 16, 4096, -4096))
        elif how == 2:
            del words[at : at + rng.choice((1, 1, 5))]
        elif how == 3:
            words.insert(at, rng.randrange(2**64))
        else:
            words[at] = words[rng.randrange(len(words))]
        if not words:
            return [0]
    return words
