"""The screen lets the surface through and nothing else, and says why, with the line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.program.screen import screen
from evaluator.records import Limits, Outcome, ProgramFault, Rung

HONEST = '''"""Adds one.

Techniques: none
"""
import math

import cupy as cp
from evaluator import lib

THREADS = 256
SOURCE = r"""
#include <cuda_fp16.h>
extern "C" __global__ void add(const float* x, float* y, int n, float c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + c;
}
"""
add = cp.RawKernel(SOURCE, "add", options=("-std=c++17", "-DTHREADS=" + str(THREADS)))
tiles = [cp.RawModule(code=SOURCE, name_expressions=("add",)).get_function("add") for _ in range(2)]
add.max_dynamic_shared_size_bytes = 65536


def blocks(n: int, per_block=THREADS) -> int:
    """Whole blocks."""
    assert n > 0, "nothing to do"
    return (n + per_block - 1) // per_block


def forward(x: cp.ndarray, *rest):
    y = cp.empty_like(x)
    scale = math.sqrt(x.size) if x.ndim > 1 and not x.size % 2 else float(-1)
    first, *others = x.shape
    for i, extent in enumerate(x.shape):
        if extent == 0:
            continue
        elif i > 3:
            break
        else:
            pass
    total: int = 0
    total += sum([e for e in x.shape if e != 1])
    add((blocks(x.size), 1), (THREADS,), (x, y, x.size, cp.float32(scale)), shared_mem=0)
    y[...] = x[0:first].reshape(*x.shape)
    return y @ x if x.dtype == cp.float64 else y
'''


def fault(text, limits=None):
    with pytest.raises(ProgramFault) as caught:
        screen(text, limits)
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.REFUSED, Rung.SCREEN)
    return caught.value.fault


def outcome(text):
    """Outcome of the screen, None where the text passes."""
    try:
        screen(text)
    except ProgramFault as caught:
        return caught.fault.outcome
    return None


def in_forward(statement):
    return f"def forward(x):\n    {statement}\n"


def test_the_whole_surface_passes():
    assert screen(HONEST) is None


# Each is one line that stands in line 2; the reason must name what is wrong.
ESCAPES = {
    "import": ("import os", "import os"),
    "import inside": ("import math", "import math"),
    "import from": ("from os import system", "from os"),
    "import numpy": ("import numpy as np", "numpy"),
    "dunder attribute": ("return ().__class__.__base__.__subclasses__()", "__subclasses__"),
    "dunder name": ("return __builtins__", "__builtins__"),
    "dunder import": ("return __import__('os')", "__import__"),
    "dunder in the middle": ("a__b = 1", "a__b"),
    "private name": ("_x = 1", "_x"),
    "dunder name in wide letters": ("a\uff3f\uff3fb = 1", "a__b"),
    "dunder attribute in wide letters": ("return x.f\uff3f\uff3fg", "f__g"),
    "private attribute": ("return x._recorder", "_recorder"),
    "format": ("return '{0.__class__}'.format(x)", ".format"),
    "format_map": ("return '{x}'.format_map", ".format_map"),
    "join": ("return ','.join(['a'])", ".join"),
    "f-string": ("return f'{x.shape}'", "JoinedStr"),
    "percent": ("return '%s' % x", "string formatting"),
    "generator": ("return sum(i for i in x.shape)", "GeneratorExp"),
    "generator frame": ("return (1 for i in x.shape).gi_frame", "gi_frame"),
    "yield": ("yield x", "Yield"),
    "await": ("await x", "not"),
    "lambda": ("return (lambda: 0)()", "Lambda"),
    "try": ("try: pass\n    except: pass", "Try"),
    "raise": ("raise x", "Raise"),
    "with": ("with x: pass", "With"),
    "while": ("while 1: pass", "While"),
    "class": ("class A: pass", "ClassDef"),
    "nested function": ("def inner(): pass", "inner is nested"),
    "match": ("match x:\n        case 1: pass", "Match"),
    "match class": ("match x:\n        case object(__class__=k): pass", "Match"),
    "walrus": ("return (y := 1)", "NamedExpr"),
    "del": ("del x", "Delete"),
    "global": ("global y", "Global"),
    "power": ("return 9 ** 9", "power operator"),
    "power in place": ("x **= 2", "power operator"),
    "attribute store": ("x.shape = (1,)", "assigning to"),
    "attribute store through a tuple": ("x.shape, y = 1, 2", "assigning to"),
    "attribute store in a loop": ("for x.size in (1,): pass", "assigning to"),
    "attribute store in a list comprehension": ("y = [0 for x.size in (1,)]", "assigning to"),
    "attribute in place": ("x.size += 1", "assigning to"),
    "method store": ("cp.empty = x", "assigning to"),
    "dict display": ("return {'a': 1}", "Dict"),
    "dict comprehension": ("return {i: i for i in x.shape}", "DictComp"),
    "set": ("return {1}", "Set"),
    "double star": ("return cp.empty(**x)", "**arguments"),
    "bytes": ("return b'a'", "bytes"),
    "complex": ("return 1j", "complex"),
    "huge integer": ("return 99999999999999999999999", "64 bits"),
    "kernel stream": ("x((1,), (1,), (), stream=cp.cuda.Stream())", ".Stream is not"),
    "monkeypatch": ("x.fill = cp.empty", "assigning to"),
    "unknown cp": ("return cp.einsum('i->', x)", "cp.einsum"),
    "raw cuda": ("return cp.cuda", "cp.cuda is not"),
    "file of cp": ("return cp.load('a')", "cp.load"),
    "unknown math": ("return math.factorial(10)", "math.factorial"),
    "unknown lib": ("return lib.system('a')", "lib.system"),
    "array method": ("return x.sum()", ".sum"),
    "array pointer": ("return x.data.ptr", "."),
    "host copy": ("return x.get()", ".get"),
    "list method": ("y = []\n    y.append(1)", ".append"),
    "type object": ("return int.from_bytes", ".from_bytes"),
    "alias of cp": ("c = cp\n    c.empty(1)", ".empty"),
    "raw module path": ("cp.RawModule.get_global('x')", "get_global"),
    "decorated": ("pass\n@x\ndef g(): pass", "decorators"),
    "default argument": ("pass\ndef g(a=().__class__): pass", "__class__"),
    "annotation": ("pass\ndef g(a: ().__class__): pass", "__class__"),
    "returned annotation": ("pass\ndef g() -> ().__class__: pass", "__class__"),
    "variable annotation": ("y: ().__class__ = 1", "__class__"),
    "star parameters": ("pass\ndef g(**k): pass", "**parameter"),
    "dunder parameter": ("pass\ndef g(__a): pass", "__a"),
    "dunder keyword": ("x(__a=1)", "__a"),
    "async function": ("pass\nasync def g(): pass", "AsyncFunctionDef"),
    "async comprehension": ("return [i async for i in x]", "async"),
    "relative import": ("pass\nfrom . import a", "from . import a"),
    "star import": ("pass\nfrom cupy import *", "from cupy import *"),
    "import without alias": ("pass\nimport cupy", "import cupy"),
    "other alias": ("pass\nimport math as cp", "import math as cp"),
    "two imports": ("pass\nimport math, os", "import math, os"),
    "type alias trick": ("return x[().__class__]", "__class__"),
}


@pytest.mark.parametrize(("statement", "reason"), ESCAPES.values(), ids=ESCAPES.keys())
def test_an_escape_is_refused(statement, reason):
    found = fault(in_forward(statement))
    assert reason in found.message
    assert found.line is not None
    assert found.line >= 2


def test_the_line_and_the_cure_are_given():
    found = fault("import cupy as cp\n\n\ndef forward(x):\n    n = 0\n    while n < 3:\n        n += 1\n    return x\n")
    assert found.line == 6
    assert found.message == "`While` is not in the surface; use `for` over a range"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("x = 1\n", "no function `forward`"),
        ("def backward(x):\n    return x\n", "no function `forward`"),
        ("if 1:\n    def forward(x): pass\n", "nested"),
        ("def forward(x)\n    return x\n", "not Python"),
        ("This is no program.", "not Python"),
        ("\x7fELF\x02\x01\x01\x00\x00", "NUL"),
        ("\x89PNG\r\n\x1a\n\x01\x02", "not Python"),
        ("def forward(x):\n    return '\ud800'\n", "line 2: U+D800 is half of a surrogate pair"),
        (
            "# caf\udce9\ndef forward(x):\n    return x\n",
            "line 1: the byte 0xe9 is not UTF-8; save the program as UTF-8",
        ),
        ("\udcff\udcfe#\0", "line 1: the byte 0xff is not UTF-8"),
        ("x" * 256_001, "at most 256000 bytes"),
        ("# é" * 100_000, "at most 256000 bytes"),
        ("\ufeff\ufeffdef forward(x): pass", "not Python"),
    ],
)
def test_text_that_is_no_program_is_refused(text, reason):
    found = fault(text)
    assert reason in f"line {found.line}: {found.message}"


def test_five_megabytes_are_refused_before_they_are_parsed(monkeypatch):
    monkeypatch.setattr("ast.parse", lambda text: pytest.fail("parsed"))
    assert "at most" in fault("x = 1\n" * 900_000).message


N = 60_000
BOMBS = {
    "sum": "+".join(["x"] * N),
    "minus": "-" * N + "x",
    "not": "not " * N + "x",
    "attributes": "x" + ".T" * N,
    "calls": "x" + "()" * N,
    "subscripts": "x" + "[0]" * N,
    "parentheses": "(" * N,
    "brackets": "[" * N + "]" * N,
    "nested lists": "[" * 150 + "]" * 150,
    "conditionals": "1 if 1 else " * (N // 4) + "1",
    "comparison": "<".join(["x"] * N),
    "and": " and ".join(["x"] * (N // 2)),
    "targets": "x=" * N + "x",
    "strings": '"a" ' * N,
    "continuations": "\\\n" * N,
    "digits": "1" * N,
    "else-ifs": "if x: pass\n" + "    elif x: pass\n" * (N // 8),
}


@pytest.mark.parametrize("expression", BOMBS.values(), ids=BOMBS.keys())
def test_a_parser_bomb_ends_in_a_refusal_or_passes(expression):
    assert outcome(in_forward(expression)) in (None, Outcome.REFUSED)


def test_deep_blocks_are_refused():
    text = "def forward(x):\n" + "".join("    " * (i + 1) + "if x:\n" for i in range(120)) + "    " * 121 + "pass\n"
    assert "not Python" in fault(text).message


def test_the_size_limit_is_an_argument():
    assert "at most 10 bytes" in fault(in_forward("return x"), Limits(source_bytes=10)).message


def test_cuda_text_is_screened_where_it_stands():
    source = "\n#include <cuda_fp16.h>\n#include </etc/passwd>\n__global__ void k() {}"
    text = f"import cupy as cp\nk = cp.RawKernel(r'''{source}''', 'k')\n"
    found = fault(text + in_forward("return x"))
    assert "/etc/passwd" in found.message
    assert found.line == 4


def test_a_docstring_about_cuda_is_no_cuda():
    words = '"""Uses __global__ and #include <bits/stdc++.h> in words."""\n'
    assert screen(words + in_forward("return x")) is None


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_refused_or_passes(text):
    assert outcome(text) in (None, Outcome.REFUSED)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, len(HONEST)), st.integers(0, 40), st.sampled_from(["__", "_", "*", "lambda:0", "\n", "(", "\\", "'"])
)
def test_a_damaged_program_is_refused_or_passes(at, length, insert):
    assert outcome(HONEST[:at] + insert + HONEST[at + length :]) in (None, Outcome.REFUSED)
