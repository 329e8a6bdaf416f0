"""CUDA text outside the surface is refused with its line; honest text is not."""

import pytest

from evaluator.program import compile_options, cuda_screen
from evaluator.records import Outcome, ProgramFault, Rung

HONEST = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
# include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/cub.cuh>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/type_traits>
#include <stdint.h>   // fixed widths
#include <cmath> /* math */
#define TILE 16
#define LOAD(x) \
  __ldg(x)
#ifdef NEVER
#error "don't"
#endif
#if TILE > 8 && defined(TILE)
#else
#endif
#if __CUDA_ARCH__ >= 700 && __cplusplus >= 201703L
#endif
#ifndef M_PI
#define M_PI 3.14159
#endif
#pragma unroll
#pragma unroll 4
#pragma nv_diag_suppress 177
namespace cg = cooperative_groups;
template <typename T> struct __align__(16) Pair { T a, b; };
struct __attribute__((aligned(16))) Four { float v[4]; };
__device__ __attribute__((noinline)) float f(float x) { return x * 1e-3f; }
[[nodiscard]] __device__ int g() { return 'a' + sizeof("b\n"); }
extern "C" __global__ void __launch_bounds__(256, 2) k(const float* __restrict__ x) {
  extern __shared__ float s[];
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(*(unsigned*)s));
  printf("%f // not a comment\n", f(x[0]));
}
"""


def fault(source, program=""):
    with pytest.raises(ProgramFault) as caught:
        cuda_screen.check(source, program)
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.REFUSED, Rung.SCREEN)
    return caught.value.fault


def test_honest_text_passes():
    cuda_screen.check(HONEST, program="")
    assert list(cuda_screen.findings(HONEST)) == []


REFUSED = {
    "absolute": "#include </etc/passwd>",
    "quoted": '#include "cuda_fp16.h"',
    "quoted path": '#include "/etc/passwd"',
    "parent": "#include <../cuda_fp16.h>",
    "unknown": "#include <vector>",
    "host": "#include <cstdlib>",
    "prefix of an allowed one": "#include <cuda_fp16.hpp>",
    "two headers": "#include <cmath> <cstdio>",
    "macro": "#define H <cstdlib>\n#include H",
    "spaces before": "   #   include <cstdlib>",
    "comment inside": "#/**/include/**/<cstdlib>",
    "comment over lines": "#include /*\n*/ <cstdlib>",
    "comment before": "/* a\n b */ #include <cstdlib>",
    "continued": "#inc\\\nlude <cstdlib>",
    "continued with spaces": "#inc\\  \nlude <cstdlib>",
    "continued after the hash": "#\\\ninclude <cstdlib>",
    "digraph": "%:include <cstdlib>",
    "trigraph": "??=include <cstdlib>",
    "trigraph line splice": "// x ??/\n#include <cstdlib>",
    "hidden by a quote": "'\n#include <cstdlib>\n'",
    "hidden by a raw string": 'R"(\n#include <cstdlib>\n)"',
    "hidden by a comment in a quote": '"/*"\n#include <cstdlib>\n"*/"',
    "hidden by a digit separator": "1'0/*'\n#include <cstdlib>\n*/",
    "include_next": "#include_next <cmath>",
    "import": "#import <cmath>",
    "module": "import std;",
    "embed": "#embed </etc/passwd>",
    "has include": "#if __has_include(</etc/passwd>)\n#endif",
    "has include in code": "int a = __has_include(<b>);",
    "has embed": "#if __has_embed(</etc/passwd>)\n#endif",
    "line": '#line 1 "a"',
    "line marker": '# 1 "a"',
    "ident": '#ident "a"',
    "pragma GCC": "#pragma GCC dependency </etc/passwd>",
    "pragma push_macro": '#pragma push_macro("a")',
    "pragma alone": "#pragma",
    "_Pragma": '_Pragma("GCC poison x")',
    "incbin": 'asm(".incbin \\"/etc/passwd\\"");',
    "assembler include": 'asm(".include \\"/etc/passwd\\"");',
    "constructor": "__attribute__((constructor)) void f() {}",
    "constructor with underscores": "__attribute__((__constructor__(101))) void f() {}",
    "constructor in brackets": "[[gnu::constructor]] void f() {}",
    "destructor": "void __attribute__((destructor)) f() {}",
    "section": '__attribute__((section(".init_array"))) void* f;',
    "cleanup": "__attribute__((cleanup(f))) int x;",
    "alias": '__attribute__((alias("system"))) int f();',
    "ifunc": '__attribute__((ifunc("g"))) void f();',
    "thread_local": "thread_local int x;",
    "__thread": "static __thread int x;",
    "runtime of the emulator": "__device__ void f() { emulator_context.next = 1024; }",
    "macro of the emulator": "#define A EMULATOR_NOINLINE",
    "keyword redefined": "#define static",
    "word of CUDA redefined": "#define __shared__ static __device__",
    "word of CUDA undefined": "%:undef __global__",
    "built-in variable redefined": "#define threadIdx blockIdx",
    "asks for a macro of the emulator": "#ifndef threadIdx\n#endif",
    "asks for a compiler": "#if defined(__EDG__)\n#endif",
    "asks for a standard library": "#ifdef _LIBCPP_VERSION\n#endif",
    "asks for the optimiser": "int a = __OPTIMIZE__;",
    "time of compilation": "const char* a = __TIME__;",
    "name with its types": "const char* a = __PRETTY_FUNCTION__;",
    "counter": "int a = __COUNTER__;",
    "what the compiler knows": "#if __has_builtin(__builtin_expect)\n#endif",
    "frame": "void* a = __builtin_dwarf_cfa();",
    "processor": 'bool a = __builtin_cpu_supports("avx");',
    "eighty bits": "long double a;",
    "quadruple": "__float128 a;",
    "computed goto": "void f(void* a) { goto *a; }",
    "NUL": "int a;\0",
    "unended comment": "/* #include <cmath>",
    "unended string": 'const char* a = "b',
    "many kernels": "__global__ void k();" * 257,
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED.keys())
def test_a_trick_is_refused(source):
    assert fault(source).outcome is Outcome.REFUSED
    assert fault(HONEST + source).outcome is Outcome.REFUSED


def test_the_line_of_the_program_is_given():
    source = "\n#include <cuda_fp16.h>\n#include <cstdlib>\n"
    found = fault(source, program=f"import cupy as cp\nk = cp.RawKernel(r'''{source}''', 'k')\n")
    assert found.line == 4
    assert "#include <cstdlib> is not on the allow-list" in found.message
    assert fault(source, program="no such text").line is None
    assert fault(source, program=source * 2).line is None


def test_a_cxx_name_is_refused_only_where_it_is_certain():
    with pytest.raises(ProgramFault, match="name_expressions"):
        cuda_screen.check_c_names("__global__ void k() {}", ["k"], program="")
    with pytest.raises(ProgramFault, match="kernel k has a C"):
        cuda_screen.check_c_names('extern "C" __global__ void l() {} __global__ void k() {}', ["k", "l"], program="")
    cuda_screen.check_c_names("__global__ void k() {}", [], program="")
    cuda_screen.check_c_names('extern "C" __global__ void k(); __global__ void k() {}', ["k"], program="")
    cuda_screen.check_c_names('#define K(n) extern "C" __global__ void n()\nK(k) {}', ["k"], program="")


ALLOWED = (
    "-std=c++11 -std=c++14 --std=c++17 -std=c++20 --use_fast_math -use_fast_math --fmad=false -ftz=true "
    "-prec-div=false -lineinfo --generate-line-info --maxrregcount=64 -maxrregcount=255 -DN=4 -DNDEBUG -DA=(1+2) "
    "--define-macro=T=float -w --restrict --extra-device-vectorization -default-device "
    "--device-as-default-execution-space"
)
OTHERS = (
    "- -I/etc -I --include-path=/etc -include --pre-include=/etc/passwd -arch=sm_90 --gpu-architecture=sm_90 -O3 -G "
    '-rdc=true -dlto -D -DA;B -D__CUDA_ARCH__=1 -DA="b" -DA=# -std=c++23 --pch --create-pch=/tmp/a --maxrregcount=0 '
    "x @file"
)


@pytest.mark.parametrize("option", ALLOWED.split())
def test_an_allowed_option(option):
    assert compile_options.check([option], program="") is None


@pytest.mark.parametrize("option", [*OTHERS.split(), "", "-w -I/", "-DA=B\n-I/", "--use_fast_math ", "-D A"])
def test_another_option_is_refused(option):
    with pytest.raises(ProgramFault, match="is not in the surface") as caught:
        compile_options.check(["-w", option], program="")
    assert caught.value.fault.outcome is Outcome.REFUSED


@pytest.mark.parametrize(
    "option", ["-Dkept=evaluator_signature_9", "-Dkept=__unnamed_1", "--define-macro=early=constructor", "-Demulator_x"]
)
def test_an_option_says_no_word_that_the_text_may_not_say(option):
    with pytest.raises(ProgramFault, match="defines what CUDA text may not say") as caught:
        compile_options.check([option], program="")
    assert caught.value.fault.outcome is Outcome.REFUSED
