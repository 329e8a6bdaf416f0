"""Facts about CUDA text: tokens, kernels and their parameters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.program.cuda_text import MAX_KERNELS, Kernel, Parameter, kernels
from evaluator.program.cuda_tokens import Kind, tokenize


def texts(source):
    return [token.text for token in tokenize(source) if token.kind is not Kind.NEWLINE]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a+b", ["a", "+", "b"]),
        ("a // b\nc /* d\n e */ f", ["a", "c", "f"]),
        ('"a // \\" b" c', ['"a // \\" b"', "c"]),
        ("'a' '\\''", ["'a'", "'\\''"]),
        ("1.5e-3f 0x1p-4 .5 1'000 7ull", ["1.5e-3f", "0x1p-4", ".5", "1'000", "7ull"]),
        ("a<<<1,2>>>(b)", ["a", "<<<", "1", ",", "2", ">>>", "(", "b", ")"]),
        ("x->y::z...", ["x", "->", "y", "::", "z", "..."]),
        ("int\\\nclude", ["intclude"]),
        ("// a \\\n b\nc", ["c"]),
        ("%:define", ["%:", "define"]),
        ("u8\"a\" L'b'", ['u8"a"', "L'b'"]),
        ("größe", ["größe"]),
        ("", []),
    ],
)
def test_tokens(source, expected):
    assert texts(source) == expected


def test_lines_are_counted_before_splicing():
    tokens = tokenize("a\\\nb\nc /* \n\n */ d\r\ne")
    assert [(t.text, t.line) for t in tokens if t.kind is Kind.IDENTIFIER] == [("ab", 1), ("c", 3), ("d", 5), ("e", 6)]


@pytest.mark.parametrize("source", ['"never ends', "'x", "/* never ends", '"a\nb', "\x01"])
def test_what_has_no_end_is_other(source):
    assert Kind.OTHER in {token.kind for token in tokenize(source)}


def kernel(name, *parameters, line=1, extern_c=False, template=False):
    return Kernel(name, tuple(Parameter(*p) for p in parameters), line, extern_c, template)


KERNELS = {
    "plain": ("__global__ void k() {}", kernel("k")),
    "void": ("__global__ void k(void) {}", kernel("k")),
    "extern": ('extern "C" __global__ void k(float* x) {}', kernel("k", ("float *", "x"), extern_c=True)),
    "block": ('extern "C" {\n__global__ void k(int n) {}\n}', kernel("k", ("int", "n"), line=2, extern_c=True)),
    "after a block": ('extern "C" { }\n__global__ void k(int n) {}', kernel("k", ("int", "n"), line=2)),
    "static": ("static __global__ void k(int) {}", kernel("k", ("int", ""))),
    "return type first": ('extern "C" void __global__ k(int n) {}', kernel("k", ("int", "n"), extern_c=True)),
    "bounds": ("__global__ void __launch_bounds__(256, 2) k(int n) {}", kernel("k", ("int", "n"))),
    "bounds first": ("__launch_bounds__(f(256)) __global__ void k(int n) {}", kernel("k", ("int", "n"))),
    "template": (
        "template <typename T, int N = 3> __global__ void k(T* x) {}",
        kernel("k", ("T *", "x"), template=True),
    ),
    "restrict": (
        "__global__ void k(const float* __restrict__ x, unsigned long long n) {}",
        kernel("k", ("const float * __restrict__", "x"), ("unsigned long long", "n")),
    ),
    "unnamed pointer": (
        "__global__ void k(const float* __restrict__) {}",
        kernel("k", ("const float * __restrict__", "")),
    ),
    "comma in a type": (
        "__global__ void k(Pair<int, float> p, int q) {}",
        kernel("k", ("Pair < int , float >", "p"), ("int", "q")),
    ),
    "array": (
        "__global__ void k(float x[], int (*y)[4]) {}",
        kernel("k", ("float [ ]", "x"), ("int ( * y ) [ 4 ]", "")),
    ),
    "default": ("__global__ void k(int n = f(1, 2)) {}", kernel("k", ("int", "n"))),
    "namespace": ("namespace a { __global__ void k(int n) {} }", kernel("k", ("int", "n"))),
    "attribute": ("__global__ __attribute__((noinline)) void k(int n) {}", kernel("k", ("int", "n"))),
}


@pytest.mark.parametrize(("source", "expected"), KERNELS.values(), ids=KERNELS.keys())
def test_a_kernel_and_its_parameters(source, expected):
    assert kernels(source) == (expected,)


def test_a_definition_replaces_its_declaration_and_comments_hold_none():
    source = "__global__ void k(int n);\n// __global__ void c();\n__global__ void k(int n) {}\n__global__ void l();"
    assert [(k.name, k.line) for k in kernels(source)] == [("k", 3), ("l", 4)]


@settings(max_examples=120, deadline=None)
@given(st.text(alphabet=st.sampled_from("a1_\"'\\\n#%:<>(){}[]/*,.;= RuL\0é"), max_size=120))
def test_any_text_is_read_and_no_character_is_lost(source):
    kernels(source)
    kept = "".join(token.text for token in tokenize(source))
    assert len(kept) <= len(source)
    assert all(1 <= token.line <= source.count("\n") + 1 for token in tokenize(source))


@pytest.mark.parametrize(
    "piece",
    [
        'R"(',
        "/*",
        '"',
        "{",
        "(",
        "__global__ ",
        "__global__ void k(",
        "extern",
        "\\\n",
        "<",
        "__attribute__((",
        "#if\n",
    ],
)
def test_hostile_repetition_costs_linear_time(piece):
    source = (piece * 60_000)[:120_000]
    assert len(kernels(source)) <= MAX_KERNELS
