"""NVRTC on a machine without a GPU: every program of kernels/, signatures, reports, errors, confinement, the cache."""

import os
import signal

import numpy as np
import pytest

from evaluator.devices.cuda import compilation, compiled_plan, stubs, toolkit
from evaluator.devices.cuda.compiler import Compiler
from evaluator.judge.baseline import kernels_folder
from evaluator.nn import run
from evaluator.program.plan import Buffer, IntArgument, Launch, Module, Plan, View
from evaluator.program.trace import trace
from evaluator.records import Limits, Outcome, ProgramFault
from evaluator.tasks import catalog

LIMITS = Limits()
ARCHITECTURES = (80, 90, 100)
PROGRAMS = sorted(kernels_folder().glob("*/*.py"))


def compile_text(compiler, source, kernels=("k",), options=(), architecture=90):
    return compilation.compile_module(compiler, Module(source, tuple(options), tuple(kernels)), architecture)


def fault(compiler, source, **kwargs):
    with pytest.raises(ProgramFault) as caught:
        compile_text(compiler, source, **kwargs)
    return caught.value.fault


def plan_of(path):
    task = catalog.get(path.parent.name)
    arrays = task.arrays_at("cpu")
    inputs, parameters = ([a for a in arrays if a.parameter is kind] for kind in (False, True))
    return trace(path.read_text(), inputs, run.abstract(task, "cpu"), LIMITS, parameters)


@pytest.mark.rotating
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_program_of_kernels_compiles(compiler, path):
    plan = plan_of(path)
    for architecture in ARCHITECTURES:
        compiled = compiled_plan.compile(plan, compiler, architecture, LIMITS)
        assert all(module.cubin[:4] == b"\x7fELF" for module in compiled.modules)
        assert compiled.report["spills"] == 0, architecture


def test_parameters_are_read_from_the_cubin(compiler):
    source = """#include <cuda_fp16.h>
    enum Mode { ONE, TWO };
    template <class T, int N> __global__ void k(const T* __restrict__ a, float s, const long long n, __half h, bool g,
        unsigned char u, size_t z, Mode m, double d) { *(T*)a = T(N); }"""
    made = compile_text(compiler, source, ("k<float, 4>",))
    pairs = np.frombuffer(made.signatures["k<float, 4>"], np.int32)
    assert pairs[0] == 9
    assert pairs[1:19].reshape(9, 2).tolist() == [
        [0, 8], [3, 4], [1, 8], [4, 2], [6, 1], [2, 1], [2, 8], [1, 4], [3, 8]
    ]  # fmt: skip


def test_the_report_of_ptxas_is_kept(compiler):
    source = 'extern "C" __global__ void k(float* y) { __shared__ float s[256]; s[threadIdx.x] = y[threadIdx.x];'
    made = compile_text(compiler, source + " __syncthreads(); y[threadIdx.x] = s[255 - threadIdx.x]; }")
    assert made.reports["k"].shared_bytes == 1024
    assert 4 <= made.reports["k"].registers <= 32


def test_writable_globals_are_named_and_constants_are_not(compiler):
    source = """__device__ int calls; __device__ float kept[8] = {1}; __constant__ float table[4];
    extern "C" __global__ void k(float* y) { calls++; y[0] = kept[1] + table[2]; printf("%d", calls); }"""
    assert sorted(compile_text(compiler, source).globals) == ["$str", "calls", "evaluator_signature_0", "kept"]


@pytest.mark.parametrize(
    "body",
    [
        "static int kept; y[0] = kept++;",
        'volatile char* kept = (volatile char*)"a literal"; y[0] = kept[0]; kept[0] = kept[0] + 1;',
        'int v; asm volatile("{ .global .u32 kept; ld.global.u32 %0, [kept]; st.global.u32 [kept], 1; }" : "=r"(v));'
        "y[0] = v;",
    ],
    ids=["static", "literal", "assembly"],
)
def test_state_that_no_variable_of_the_text_names_is_named(compiler, body):
    plain = compile_text(compiler, 'extern "C" __global__ void k(float* y) { y[0] = 1; }').globals
    made = compile_text(compiler, f'extern "C" __global__ void k(float* y) {{ {body} }}').globals
    assert len(made) == len(plain) + 1


def test_variables_count_as_memory_of_the_plan(compiler):
    source = "__device__ char kept[2ll << 30]; " + 'extern "C" __global__ void k(char* y) { y[0] = kept[y[1]]++; }'
    plan = Plan(
        buffers=(Buffer("x", "input", "uint8", (4,)),),
        modules=(Module(source, (), ("k",)),),
        steps=(Launch(0, "k", (1, 1, 1), (1, 1, 1), 0, (View(0, 0, (4,)),), 1),),
        outputs=(View(0, 0, (4,)),),
    )
    with pytest.raises(ProgramFault, match="variables of its modules 21474") as caught:
        compiled_plan.compile(plan, compiler, 90, LIMITS)
    assert caught.value.fault.outcome is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize("header", sorted(stubs.HEADERS))
def test_headers_that_nvrtc_lacks(compiler, header):
    body = {"stdint": "(uint32_t)3", "math": "(int)M_PI", "limits": "INT_MAX", "float": "(int)(FLT_MAX * 0)"}
    expression = body.get(header.removesuffix(".h").removeprefix("c"), "1")
    source = f'#include <{header}>\nextern "C" __global__ void k(int* y) {{ y[0] = {expression}; }}'
    assert compile_text(compiler, source).cubin[:4] == b"\x7fELF"


def test_infinity_and_half_need_no_include_of_the_hosts(compiler):
    source = (
        '#include <cuda_fp16.h>\nextern "C" __global__ void k(float* y) { y[0] = __half2float(__float2half(y[1])); }'
    )
    assert compile_text(compiler, source).cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('extern "C" __global__ void k(int* y) {\n y[0] = z; }', 'kernel text line 2: identifier "z" is undefined'),
        ('extern "C" __global__ void other(int* y) { y[0] = 1; }', '"k" is undefined'),
        ('extern "C" __global__ void k(int* y) { asm("no_such_instruction;"); y[0] = 1; }', "no_such_instruction"),
        ("#include <no_such_header.h>\n", "no_such_header.h"),
        ('extern "C" __global__ void k(int* y) { y[0] = 1;', "error"),
    ],
    ids=["undefined", "no kernel", "bad PTX", "no header", "open brace"],
)
def test_what_does_not_compile(compiler, source, words):
    found = fault(compiler, source)
    assert found.outcome is Outcome.COMPILE_ERROR
    assert words in found.message
    assert len(found.message) < 600


@pytest.mark.parametrize("file", ["/etc/passwd", "/proc/self/environ"])
def test_the_compiler_reads_no_files_of_the_machine(compiler, file):
    with pytest.raises(ProgramFault, match="annot open source file") as caught:
        compiler.compile(f'#include "{file}"\n', "kernel.cu", ["-arch=sm_90"], [])
    assert "root:" not in caught.value.fault.message


def test_a_compiler_that_is_killed_starts_again(compiler):
    compiler.start()
    os.kill(compiler._process.pid, signal.SIGKILL)
    compiler._process.wait()
    assert compile_text(compiler, 'extern "C" __global__ void k(int* y) { y[0] = 77; }').cubin


def test_a_text_that_takes_too_long_is_cut():
    if not toolkit.installed():
        pytest.skip("no NVRTC: pip install 'cudal1-jax[dev]'")
    functions = (f"__device__ float f{i}(float x) {{ return sinf(x) * f{i - 1}(x + 1); }}" for i in range(1, 3000))
    source = "__device__ float f0(float x) { return x; }" + "".join(functions)
    source += 'extern "C" __global__ void k(float* y) { y[0] = f2999(y[1]); }'
    with Compiler(Limits(compile_s=0.1)) as compiler:
        compiler.start()
        assert fault(compiler, source).outcome is Outcome.TIMEOUT
        assert compile_text(compiler, 'extern "C" __global__ void k(int* y) { y[0] = 78; }').cubin


def test_the_cache_gives_the_same_cubin_without_the_compiler(compiler):
    source = 'extern "C" __global__ void k(int* y) { y[0] = 4711; }'
    first, again = compile_text(compiler, source), compile_text(compiler, source)
    assert again.cubin == first.cubin
    assert again.reports == first.reports
    assert (first.compile_ms > 0, again.compile_ms) == (True, 0.0)
    assert compile_text(compiler, source, architecture=80).cubin != first.cubin


def test_a_bare_float_for_a_float_parameter_is_refused_with_the_cure(compiler):
    module = Module('extern "C" __global__ void k(float* y, float s) { y[0] = s; }', (), ("k",))
    launch = Launch(0, "k", (1, 1, 1), (1, 1, 1), 0, (View(0, 0, (1,)), IntArgument(3)), 5)
    plan = Plan((Buffer("t0", "temporary", "float32", (1,)),), (module,), (launch,), (View(0, 0, (1,)),))
    with pytest.raises(ProgramFault, match=r"argument 2 \(float s\): got the int 3.*write cp.float32\(3\)") as caught:
        compiled_plan.compile(plan, compiler, 90, LIMITS)
    assert caught.value.fault.line == 5


def test_without_nvrtc_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDAL1_NVRTC", str(tmp_path / "missing.so"))
    toolkit.find.cache_clear()
    with pytest.raises(ProgramFault, match=r"no file; install the cuda13 extra") as caught:
        toolkit.find()
    assert caught.value.fault.outcome is Outcome.EVALUATOR_ERROR
