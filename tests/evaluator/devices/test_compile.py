"""What does not compile, what cannot be run, what does not fit a launch, and the cache of objects."""

import dataclasses
import os
import pathlib

import numpy as np
import pytest

from evaluator.devices import cpu, elf, object_cache, toolchain
from evaluator.records import Limits, Outcome, ProgramFault, Rung

LIMITS = Limits()
COPY = "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x] + n; }"


@pytest.fixture
def compile_fault(plan_of):
    def run(source, arguments, **launch):
        limits = launch.pop("limits", LIMITS)
        plan, _ = plan_of(source, arguments, **launch)
        with pytest.raises(ProgramFault) as caught:
            cpu.compile(plan, limits)
        return caught.value.fault

    return run


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "int a = 1;\n int b = a +;\n",
            "kernel text line 2: expected primary-expression before ';' token | int b = a +;",
        ),
        ("\n undefined_name(3);\n", "kernel text line 2: 'undefined_name' was not declared in this scope"),
        ("\n threadIdx.x = 3;\n", "kernel text line 2: using rvalue as lvalue"),
        ("\n throw 3;\n", "kernel text line 2: exception handling disabled"),
        ("\n }\n", "kernel 'k': the braces of the kernel text do not match"),
    ],
)
def test_first_error_is_told_in_the_programs_own_lines(compile_fault, out, body, words):
    fault = compile_fault(f"__global__ void k(int* y) {{ {body} }}", [out((1,), "int32")])
    assert (fault.outcome, fault.rung) == (Outcome.COMPILE_ERROR, Rung.COMPILE)
    assert words in fault.message
    assert "emulator_module" not in fault.message


def test_error_in_the_second_of_two_modules(plan_of, out):
    plan, _ = plan_of("__global__ void k(int* y) { y[0] = 1; }", [out((1,), "int32")])
    broken = dataclasses.replace(plan.modules[0], source="\n\n__global__ void k(int* y) { y[0] = oops; }")
    with pytest.raises(ProgramFault, match="kernel text line 3: 'oops' was not declared"):
        cpu.compile(dataclasses.replace(plan, modules=(plan.modules[0], broken)), LIMITS)


def test_modules_that_cannot_share_a_unit_are_compiled_apart(plan_of, out):
    plan, _ = plan_of(
        "namespace std { struct mine {}; }\n__global__ void k(int* y) { y[0] = 1; }", [out((2,), "int32")]
    )
    second = dataclasses.replace(
        plan.modules[0], source="__global__ void k(int* y) { y[1] = 2; }", options=("-std=c++20",)
    )
    steps = (plan.steps[0], dataclasses.replace(plan.steps[0], module=1))
    plan = dataclasses.replace(plan, modules=(plan.modules[0], second), steps=steps)
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        assert session.run([]).outputs[0].tolist() == [1, 2]


@pytest.mark.parametrize("declared", ['extern "C" void', "void", "__device__ void", "namespace { } static void"])
def test_a_function_that_is_not_declared_global_is_no_kernel(compile_fault, out, declared):
    fault = compile_fault(f"{declared} k(int* y) {{ y[0] = 1; }}", [out((1,), "int32")])
    assert (fault.outcome, fault.rung) == (Outcome.COMPILE_ERROR, Rung.COMPILE)
    assert "no kernel: declare it __global__" in fault.message


@pytest.mark.parametrize("declared", ['extern "C" int there;', "extern int there;", 'extern "C" { extern int there; }'])
def test_a_variable_that_is_only_declared_is_not_defined_by_the_emulator(compile_fault, out, declared):
    fault = compile_fault(f"{declared}\n__global__ void k(int* y) {{ y[0] = there; }}", [out((1,), "int32")])
    assert (fault.outcome, fault.message) == (Outcome.COMPILE_ERROR, "there is declared and nowhere defined")


def test_a_macro_in_any_spelling_is_gone_behind_the_text(plan_of, out):
    source = "%:define arguments (void**)0\n/**/ # /**/ define target 0\n__global__ void k(int* y) { y[0] = 7; }"
    plan, _ = plan_of(source, [out((1,), "int32")])
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        assert session.run([]).outputs[0].tolist() == [7]


def test_kernel_that_is_not_in_the_text(compile_fault, out):
    fault = compile_fault("__global__ void other(int* y) { y[0] = 1; }", [out((1,), "int32")])
    assert fault.outcome is Outcome.COMPILE_ERROR
    assert "kernel 'k'" in fault.message
    assert "was not declared" in fault.message


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('asm volatile("mov.u32 %0, 1;" : "=r"(n));', "inline PTX (asm)"),
        ("k<<<1, 1>>>(x, y, n);", "launch from device code"),
        ("cp_async_bulk_wait();", "TMA"),
        ("auto c = cooperative_groups::this_cluster();", "clusters"),
        ("float v = tex2D<float>(t, 1, 2);", "textures"),
    ],
)
def test_what_needs_a_gpu_is_unsupported_and_names_its_line(compile_fault, out, code, words):
    source = "\n\n" + COPY.replace("{ y", "{\n" + code + " y")
    fault = compile_fault(source, [np.zeros(4, np.float32), out((4,)), 4])
    assert (fault.outcome, fault.rung) == (Outcome.UNSUPPORTED, Rung.COMPILE)
    assert words in fault.message
    assert "line 4" in fault.message


@pytest.mark.parametrize("text", ["// asm volatile\n", "/* <<< */", 'const char* name = "asm <<<";'])
def test_words_in_comments_and_strings_do_not_count(outputs_of, out, text):
    assert outputs_of(f"{text}\n__global__ void k(int* y) {{ y[0] = 1; }}", [out((1,), "int32")], block=(1,))[0][0] == 1


@pytest.mark.parametrize(
    "header", ["cub/cub.cuh", "thrust/sort.h", "cute/tensor.hpp", "cuda/barrier", "curand_kernel.h"]
)
def test_libraries_of_device_code_are_unsupported(compile_fault, out, header):
    fault = compile_fault(f"#include <{header}>\n{COPY}", [np.zeros(4, np.float32), out((4,)), 4])
    assert fault.outcome is Outcome.UNSUPPORTED
    assert header in fault.message


@pytest.mark.parametrize("header", ["<iostream>", '"/etc/passwd"', "<../../etc/passwd>", "NAME", "<sys/mman.h>"])
def test_other_files_cannot_be_included(compile_fault, out, header):
    fault = compile_fault(f"#include {header}\n{COPY}", [np.zeros(4, np.float32), out((4,)), 4])
    assert fault.outcome is Outcome.COMPILE_ERROR
    assert "line 1: cannot include" in fault.message
    assert "root:" not in fault.message


def test_compiler_cannot_read_other_files(plan_of, out, monkeypatch, tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text("int leaked_words here")
    from evaluator.devices import lowering

    monkeypatch.setattr(lowering, "_include", lambda rest, line: f"#include{rest}")
    plan, _ = plan_of(f'#include "{secret}"\n{COPY}', [np.zeros(4, np.float32), out((4,)), 4])
    with pytest.raises(ProgramFault) as caught:
        cpu.compile(plan, LIMITS)
    assert "leaked_words" not in caught.value.fault.message


def test_endless_compilation_is_cut(compile_fault, out):
    source = """template <int N, int M> struct Slow {
      static constexpr long v = Slow<N - 1, 2 * M>::v + Slow<N - 1, 2 * M + 1>::v; };
    template <int M> struct Slow<0, M> { static constexpr long v = M; };
    __global__ void k(int* y) { y[0] = Slow<24, 1>::v; }"""
    fault = compile_fault(source, [out((1,), "int32")], limits=Limits(compile_s=1.0))
    assert fault.outcome in (Outcome.TIMEOUT, Outcome.COMPILE_ERROR)
    assert fault.rung is Rung.COMPILE


WRONG_ARGUMENTS = [
    (
        "float* y, float v",
        [0.5],
        "argument 2 (float v): got the float 0.5; CuPy passes a float as double: write cp.float32(0.5)",
    ),
    (
        "float* y, float v",
        [3],
        "argument 2 (float v): got the int 3; CuPy passes its eight bytes unconverted: write cp.float32(3)",
    ),
    ("float* y, double v", [np.float32(2)], "argument 2 (double v): got cp.float32(2.0); write cp.float64(2.0)"),
    ("float* y, int n", [2**31], "argument 2 (int n): got the int 2147483648; it does not fit 32 bits"),
    ("float* y, int n", [np.int64(3)], "argument 2 (int n): got cp.int64(3); write cp.int32(3)"),
    ("float* y, int n", [0.5], "argument 2 (int n): got the float 0.5"),
    ("float* y, const float* x", [3], "argument 2 (a pointer x): got the int 3; pass an array"),
    ("float* y, int n", [np.zeros(2, np.float32)], "argument 2 (int n): got an array"),
    ("float* y", [3], "kernel 'k' takes 1 arguments, the launch gives 2"),
    ("float* y, int n, int m", [3], "kernel 'k' takes 3 arguments, the launch gives 2"),
]


@pytest.mark.parametrize(("parameters", "given", "words"), WRONG_ARGUMENTS)
def test_arguments_that_do_not_fit_name_the_parameter_and_the_cure(compile_fault, out, parameters, given, words):
    fault = compile_fault(f"__global__ void k({parameters}) {{ y[0] = 1; }}", [out((1,)), *given])
    assert (fault.outcome, fault.rung, fault.line) == (Outcome.LAUNCH_ERROR, Rung.LAUNCH, 7)
    assert words in fault.message


def test_arguments_of_every_kind_arrive(outputs_of, out):
    source = """#include <cuda_fp16.h>
    __global__ void k(double* y, bool b, signed char c, unsigned short s, unsigned u, long long l, size_t z, float f,
                      double d, half h, const float* null, int negative) {
      double v[] = {(double)b, (double)c, (double)s, (double)u, (double)l, (double)z, f, d, (double)(float)h,
                    (double)(null == nullptr), (double)negative};
      for (int i = 0; i < 11; i++) y[i] = v[i]; }"""
    scalars = [
        True,
        -5,
        np.uint16(9),
        2**32 - 1,
        -(2**40),
        2**63 - 1,
        np.float32(0.1),
        0.1,
        np.float16(0.5),
        0,
        np.int32(-7),
    ]
    (y,) = outputs_of(source, [out((11,), "float64"), *scalars], block=(1,))
    assert y.tolist() == [1, -5, 9, 2**32 - 1, -(2**40), float(2**63 - 1), float(np.float32(0.1)), 0.1, 0.5, 1, -7]


def test_structure_by_value_is_unsupported(compile_fault, out):
    fault = compile_fault(
        "struct P { int a, b; }; __global__ void k(int* y, P p) { y[0] = p.a; }", [out((1,), "int32"), 3]
    )
    assert fault.outcome is Outcome.UNSUPPORTED


def test_too_much_static_shared_memory(compile_fault, out):
    source = """__global__ void k(float* y) { __shared__ float s[12289]; s[threadIdx.x] = 1; __syncthreads();
      y[threadIdx.x] = s[255 - threadIdx.x]; }"""
    fault = compile_fault(source, [out((256,))])
    assert fault.outcome is Outcome.LAUNCH_ERROR
    assert "declares 49156 bytes of static shared memory; a device has 49152" in fault.message


def test_static_shared_memory_is_counted_per_kernel(plan_of, out):
    source = "".join(
        f"__global__ void {name}(float* y) {{ __shared__ float s[10000]; s[threadIdx.x] = {value}; __syncthreads();\n"
        f" y[threadIdx.x] = s[255 - threadIdx.x]; }}\n"
        for name, value in (("k", 1), ("other", 2))
    )
    plan, _ = plan_of(source, [out((256,))])
    module = dataclasses.replace(plan.modules[0], kernels=("k", "other"))
    plan = dataclasses.replace(
        plan, modules=(module,), steps=(plan.steps[0], dataclasses.replace(plan.steps[0], kernel="other"))
    )
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        assert (session.run([]).outputs[0] == 2).all()


def test_shared_memory_together_must_fit_a_block(compile_fault, out):
    source = """__global__ void k(float* y) { __shared__ float s[256]; extern __shared__ float d[]; s[threadIdx.x] = 1;
      __syncthreads(); d[threadIdx.x] = s[255 - threadIdx.x]; y[threadIdx.x] = d[threadIdx.x]; }"""
    fault = compile_fault(source, [out((256,))], shared=232448)
    assert fault.outcome is Outcome.LAUNCH_ERROR
    assert "needs 1024 static and 232448 dynamic bytes" in fault.message


def test_initialised_shared_memory_is_refused(compile_fault, out):
    fault = compile_fault("__global__ void k(int* y) { __shared__ int s = 3; y[0] = s; }", [out((1,), "int32")])
    assert fault.outcome is Outcome.COMPILE_ERROR
    assert "line 1: a __shared__ variable cannot have an initial value" in fault.message


def test_buffers_larger_than_the_limit(compile_fault, out):
    fault = compile_fault(COPY, [np.zeros(4, np.float32), out((1 << 20,)), 4], limits=Limits(memory_bytes=1 << 20))
    assert fault.outcome is Outcome.OUT_OF_MEMORY
    assert "at most 1048576 are allowed" in fault.message


def test_missing_compiler_is_our_fault_and_says_what_to_install(plan_of, out, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    toolchain.find.cache_clear()
    try:
        plan, _ = plan_of(COPY, [np.zeros(4, np.float32), out((4,)), 4])
        with pytest.raises(ProgramFault, match=r"no C\+\+ compiler .*install g\+\+") as caught:
            cpu.compile(plan, LIMITS)
    finally:
        toolchain.find.cache_clear()
    assert caught.value.fault.outcome is Outcome.EVALUATOR_ERROR


def test_second_compilation_comes_from_the_cache(plan_of, out):
    plan, _ = plan_of(COPY + "// cached", [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    first, second = cpu.compile(plan, LIMITS), cpu.compile(plan, LIMITS)
    assert first.compile_ms > 0
    assert second.compile_ms == 0
    assert first.compiled.path == second.compiled.path


@pytest.mark.parametrize("damage", [b"", b"garbage", None], ids=["empty", "garbage", "missing"])
def test_damaged_cache_entry_is_compiled_again(plan_of, out, damage):
    plan, (x,) = plan_of(COPY + f"// {damage!r}", [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    path = cpu.compile(plan, LIMITS).compiled.path
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    compiled = cpu.compile(plan, LIMITS)
    assert compiled.compile_ms > 0
    with cpu.Session(compiled, LIMITS) as session:
        assert session.run([x]).outputs[0].tolist() == [4, 4, 4, 4]


def test_options_and_compiler_are_part_of_the_key(plan_of, out):
    arguments = [np.zeros(4, np.float32), out((4,)), 4]
    plain, _ = plan_of(COPY, arguments)
    defined, _ = plan_of(COPY, arguments, options=("-DA=1",))
    assert cpu.compile(plain, LIMITS).compiled.path != cpu.compile(defined, LIMITS).compiled.path


def test_an_object_is_never_replaced_under_a_runner_that_is_about_to_load_it(tmp_path):
    first = object_cache.store(tmp_path, "key", b"one compiler run")
    inode = first.stat().st_ino
    second = object_cache.store(tmp_path, "key", b"another run, other bytes")
    again = object_cache.store(tmp_path, "key", b"one compiler run")
    assert second != first
    assert again == first
    assert first.stat().st_ino == inode
    first.write_bytes(b"damaged")
    second.write_bytes(b"damaged as well")
    assert object_cache.find(tmp_path, "key") is None
    assert list((tmp_path / "key").iterdir()) == []


def test_unwritable_cache_falls_back_to_a_temporary_folder(monkeypatch, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocker))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    folder = object_cache.folder("emulator")
    assert folder.is_dir()
    assert pathlib.Path(os.path.commonpath([folder, tmp_path])) == tmp_path


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF\x02\x01" + b"\0" * 58, b"\x7fELF\x02\x01" + b"\xff" * 200, b"MZ" * 100]
)
def test_damaged_object_is_no_object(data):
    with pytest.raises(elf.NotAnObject):
        elf.read(data)


def test_entries_not_asked_for_longest_make_room(tmp_path):
    paths = [object_cache.store(tmp_path, f"f{number}", bytes([number]) * 1000) for number in range(4)]
    for age, path in enumerate(paths):
        os.utime(path.parent, (1_000 + age, 1_000 + age))
    assert object_cache.find(tmp_path, "f0") == paths[0]  # now the youngest
    object_cache.make_room(tmp_path, 2_000)
    assert [path.exists() for path in paths] == [True, False, False, True]
