"""What a host compiler takes and NVRTC does not is a compile error on every device, with the cure."""

import pytest

from evaluator.program.nvrtc_rules import check
from evaluator.records import Outcome, ProgramFault, Rung


def kernel(body, head=""):
    return f'{head}\nextern "C" __global__ void k(float* y) {{\n  {body}\n}}'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y[0] = -INFINITY;", r"does not know INFINITY: #include <math.h>, or write a value such as __int_as_float"),
        ("y[0] = M_PI;", "does not know M_PI"),
        ("y[0] = FLT_MAX;", "#include <float.h>"),
        ("y[0] = std::max(y[0], 1.0f);", "NVRTC has no standard library"),
        ("y[0] = INT_MAX;", "#include <limits.h>"),
        ("uint32_t n = 0; y[0] = n;", "does not know uint32_t: #include <stdint.h>, or write a type"),
    ],
)
def test_names_that_need_a_header(body, words):
    source = kernel(body)
    with pytest.raises(ProgramFault, match=words) as caught:
        check(source, program=f"k = '''\n{source}'''")
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.COMPILE_ERROR, Rung.COMPILE)
    assert caught.value.fault.line == 4


@pytest.mark.parametrize(
    "source",
    [
        kernel("y[0] = -INFINITY;", "#include <math.h>"),
        kernel("y[0] = FLT_MAX;", "#define FLT_MAX 3.4e38f"),
        kernel("uint32_t n = 0; y[0] = n;", "#include <cstdint>"),
        kernel("y[0] = 1; // INFINITY"),
        kernel("y[0] = __int_as_float(0x7f800000);"),
        "__global__ void norm(float* y) { y[0] = 1; }",
        "",
    ],
)
def test_what_nvrtc_knows_passes(source):
    assert check(source, program="") is None


def test_a_kernel_cannot_have_the_name_of_a_cuda_function():
    with pytest.raises(ProgramFault, match="norm is a name of CUDA's own: give the kernel another name"):
        check('extern "C" __global__ void norm(const float* x, float* y) { y[0] = x[0]; }', program="")
