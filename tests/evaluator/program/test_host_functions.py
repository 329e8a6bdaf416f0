"""A function that NVRTC takes for a host function is a compile error; what is not certain is left to a compiler."""

import pytest

from evaluator.program.host_functions import check
from evaluator.records import Outcome, ProgramFault, Rung

HOST = [
    "float f(float x) { return x; }",
    "static inline float f(float x) { return x; }",
    "__forceinline__ float4 f(const float4& x, int n) { if (n) { return x; } return f(x, 0); }",
    "const float* f(void) { return 0; }",
    "__device__ float g(float x) { return x; }\nint f() { return 0; }",
    "struct A { float a; };\nunsigned int f() { return 0; }",
    "__device__ void big() {" + "x = (y);" * 2000 + "}\nvoid f() {}",
]
DEVICE = [
    "__device__ float f(float x) { return x; }",
    "float __device__ f(float x) { return x; }",
    'extern "C" __global__ void f(float* x) {}',
    "template <typename T> T f(T x) { return x; }",
    "constexpr int f(int x) { return x; }",
    "#define D __device__\nD float f(float x) { return x; }",
    "struct A { float f() { return 0; } };",
    "namespace a { __device__ float f() { return 0; } }",
    "float f(float x);",
    "__constant__ float c[] = {1, 2};",
    "__device__ float table[2] = {1.0f, (2.0f)};",
    "__device__ void big() {" + "if (x) { float v = f(x); }" * 2000 + "}",
    "__host__ __device__ float f() { return 0; }",
    "}}}{",
    "",
]


@pytest.mark.parametrize("source", HOST)
def test_a_host_function_is_a_compile_error(source):
    with pytest.raises(ProgramFault, match="write __device__ before the function f") as caught:
        check(source, options=("-std=c++17",), program=f"k = '''\n{source}'''")
    fault = caught.value.fault
    assert (fault.outcome, fault.rung, fault.line) == (Outcome.COMPILE_ERROR, Rung.COMPILE, 2 + source.count("\n"))


@pytest.mark.parametrize("source", DEVICE)
def test_device_code_and_uncertain_text_pass(source):
    check(source, options=(), program="")


@pytest.mark.parametrize("source", HOST)
def test_the_option_that_makes_functions_device_functions_is_honoured(source):
    check(source, options=("-default-device",), program="")
