"""Renaming, comments and layout do not change a token stream; anything that changes the meaning does."""

import hashlib

import pytest

from evaluator.program.identity import sha256, token_stream

PROGRAM = '''"""Scales rows.

Techniques: none
"""
import cupy as cp

source = r"""
#define TILE 32
__device__ float twice(float v) { return 2.0f * v; }
extern "C" __global__ void scale_rows(const float* a, const float4* b, float* out, int columns) {
  // one thread for each column
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) out[column] = twice(a[blockIdx.y]) * fmaxf(b[column].x, 0.0f) + TILE;
}
"""
scale_rows = cp.RawKernel(source, "scale_rows", options=("-std=c++17",))


def forward(a, b):
    """Rows of b times a."""
    n, m = b.shape  # rows, columns
    out = cp.empty((n, m), dtype=cp.float32)
    scale_rows(((m + 255) // 256, n), (256,), (a, b, out, m), shared_mem=0)
    return out
'''


def renamed(pairs):
    text = PROGRAM
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def test_the_hash_is_that_of_the_text_with_lf_line_ends():
    expected = hashlib.sha256(b"a\nb\nc\n").hexdigest()
    assert sha256("a\nb\nc\n") == sha256("a\r\nb\r\nc\r\n") == sha256("a\rb\nc\r\n") == expected
    assert sha256("a\nb\nc") != expected
    assert len(sha256("\ud800")) == 64


COPIES = {
    "kernel": [("scale_rows", "k")],
    "kernel variable alone": [("scale_rows = cp", "run = cp"), ("    scale_rows((", "    run((")],
    "kernel name alone": [("void scale_rows", "void k"), ('"scale_rows"', '"k"')],
    "device function": [("twice", "double_it")],
    "macro": [("TILE", "BLOCK_SIZE")],
    "cuda variable": [("column ", "i "), ("[column]", "[i]")],
    "cuda parameter": [("columns", "width")],
    "python variables": [("n, m", "rows, cols"), ("(m +", "(cols +"), (", n)", ", rows)"), (", m)", ", cols)")],
    "arguments of forward": [("forward(a, b)", "forward(p, q)"), ("b.shape", "q.shape"), ("(a, b, out", "(p, q, out")],
    "comment": [("one thread for each column", "!"), ("# rows, columns", "")],
    "block comment": [("  // one thread for each column\n", "  /* a\n     b */\n")],
    "docstring": [("Scales rows.", "Something else.")],
    "docstring of forward": [('    """Rows of b times a."""\n', "")],
    "layout of cuda": [("int column = ", "int  column\n      =\n")],
    "layout of python": [("(a, b, out, m)", "(a,  b,\n        out, m)"), ("\n\n\ndef", "\ndef")],
    "quotes": [('"scale_rows"', "'scale_rows'"), ('"""\n#define', "'''\n#define"), ('}\n"""', "}\n'''")],
    "line ends": [("\n", "\r\n")],
}


def test_a_kernels_name_may_differ_behind_launch_bounds():
    bounded = PROGRAM.replace("void scale_rows", "void __launch_bounds__(256, 4) scale_rows")
    assert bounded != PROGRAM
    copy = bounded.replace(" scale_rows(const", " k(const").replace('"scale_rows"', '"k"')
    assert copy != bounded
    assert token_stream(copy) == token_stream(bounded) != token_stream(PROGRAM)


@pytest.mark.parametrize("pairs", COPIES.values(), ids=COPIES.keys())
def test_a_copy_has_the_same_stream(pairs):
    assert renamed(pairs) != PROGRAM
    assert token_stream(renamed(pairs)) == token_stream(PROGRAM)


DIFFERENT = {
    "function of the library": [("fmaxf", "fminf")],
    "number": [("0.0f", "1.0f")],
    "block size": [("256", "128")],
    "operator": [("+ TILE", "- TILE")],
    "type": [("float4*", "float2*")],
    "qualifier": [("const float*", "const float* __restrict__")],
    "built-in variable": [("threadIdx.x", "threadIdx.y")],
    "component": [("[column].x", "[column].y")],
    "option": [("c++17", "c++20")],
    "dtype": [("cp.float32", "cp.float16")],
    "allocation": [("cp.empty", "cp.zeros")],
    "keyword of CuPy": [("dtype=", "shape=")],
    "order of arguments": [("(a, b, out, m)", "(b, a, out, m)")],
    "another variable": [("a[blockIdx.y]", "a[columns]")],
    "statement": [("    return out\n", "    scale_rows((1,), (1,), (a, b, out, m))\n    return out\n")],
}


@pytest.mark.parametrize("pairs", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_a_change_of_meaning_has_another_stream(pairs):
    assert token_stream(renamed(pairs)) != token_stream(PROGRAM)


def test_removing_the_docstring_leaves_a_copy():
    assert token_stream(PROGRAM.split('"""\n', 1)[1]) == token_stream(PROGRAM)


def test_indentation_is_kept_as_structure():
    inside = "def forward(x):\n    for i in range(3):\n        x = i\n        y = i\n    return x\n"
    outside = "def forward(x):\n    for i in range(3):\n        x = i\n    y = i\n    return x\n"
    assert token_stream(inside) != token_stream(outside)


@pytest.mark.parametrize(
    "text", ["", "def f(:\n", "'''", "  x\n y", "\0", "(" * 300, "f'{x", "\\", "#", "0777", "\ud800"]
)
def test_any_text_has_a_stream(text):
    assert isinstance(token_stream(text), str)


def test_text_that_is_not_python_is_compared_too():
    assert token_stream("int a = (b") == token_stream("int c = (d  // x")
    assert token_stream("int a = (b") != token_stream("float a = (b")
