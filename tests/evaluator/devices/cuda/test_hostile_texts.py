"""Texts that lie to what is appended to them, or confuse what is read from NVRTC: parameters, reports, characters."""

import numpy as np
import pytest

from evaluator.devices import object_cache
from evaluator.devices.cuda import compilation, compiled_plan, cubin
from evaluator.program.plan import Buffer, Launch, Module, Plan, View
from evaluator.records import Limits, Outcome, ProgramFault

STRUCTURE = "struct Big { char bytes[4000]; };\n"
TAKES_A_STRUCTURE = STRUCTURE + 'extern "C" __global__ void k(Big big, int* y) { *y = big.bytes[7]; }\n'
HONEST = 'extern "C" __global__ void k(int* y) { *y = 1; }\n'


def compile_text(compiler, source, kernels=("k",), architecture=90):
    return compilation.compile_module(compiler, Module(source, (), tuple(kernels)), architecture)


def fault(compiler, source):
    with pytest.raises(ProgramFault) as caught:
        compile_text(compiler, source)
    return caught.value.fault


@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_sizes_of_parameters_are_read_from_the_cubin(compiler, architecture):
    source = """struct Big { char bytes[4000]; }; struct Huge { char bytes[20000]; };
    extern "C" __global__ void sizes(bool a, short b, int c, double d, float4 e, Big f) {}
    extern "C" __global__ void pointers(const float* a, float* b) { *b = *a; }
    extern "C" __global__ void huge(int a, Huge b, char c) {}
    template <class T> __global__ void none() {}"""
    made = compile_text(compiler, source, ("sizes", "pointers", "huge", "none<float>"), architecture)
    assert cubin.parameter_sizes(made.cubin) == {
        "sizes": (1, 2, 4, 8, 16, 4000),
        "pointers": (8, 8),
        "huge": (4, 20000, 1),
        made.lowered["none<float>"]: (),
    }


@pytest.mark.parametrize(
    "macros",
    [
        "#define sizeof(P) 8\n",
        "#define __is_enum(T) 1\n",
        "#define sizeof(P) 8\n#define __is_enum(T) 1\n",
        "#define value value = 0, other\n",
        "#define parameters parameters_, int\n",
    ],
)
def test_macros_after_the_kernel_do_not_hide_a_structure(compiler, macros):
    found = fault(compiler, TAKES_A_STRUCTURE + macros)
    assert found.outcome is Outcome.COMPILE_ERROR


def test_the_error_names_the_sizes_and_the_cure(compiler):
    found = fault(compiler, TAKES_A_STRUCTURE + "#define sizeof(P) 8\n")
    assert "[4000, 8] bytes" in found.message
    assert "define no macros" in found.message


def test_an_array_or_zero_never_stands_for_a_structure_declared_a_number(compiler):
    message = fault(compiler, TAKES_A_STRUCTURE + "#define __is_enum(T) 1\n").message  # honest size, false kind
    assert "the compiler's own text says otherwise" in message


@pytest.mark.parametrize("macro", ["template", "constexpr", "struct int", "namespace", "decltype(x) 0"])
def test_other_words_redefined_are_a_compile_error(compiler, macro):
    assert fault(compiler, HONEST + f"#define {macro}\n").outcome is Outcome.COMPILE_ERROR


def test_a_macro_that_only_renames_our_names_changes_nothing(compiler):
    made = compile_text(compiler, HONEST + "#define count_ count_of_parameters\n#define bare naked\n")
    assert np.frombuffer(made.signatures["k"], np.int32).tolist() == [1, 0, 8, 0, 0]


def test_references_are_refused(compiler):
    found = fault(compiler, 'extern "C" __global__ void k(int& y) { y = 1; }')
    assert found.outcome is Outcome.COMPILE_ERROR
    assert "take no references" in found.message


def test_a_kernel_without_parameters_can_be_launched(compiler):
    source = 'extern "C" __global__ void k() {}\n' + HONEST.replace("k(", "write(")
    launches = (Launch(0, "k", (1, 1, 1), (1, 1, 1), 0, (), 1),)
    launches += (Launch(0, "write", (1, 1, 1), (1, 1, 1), 0, (View(0, 0, (1,)),), 2),)
    module = Module(source, (), ("k", "write"))
    plan = Plan((Buffer("t0", "temporary", "int32", (1,)),), (module,), launches, (View(0, 0, (1,)),))
    compiled = compiled_plan.compile(plan, compiler, 90, Limits())
    assert compiled.arguments == ((), (View(0, 0, (1,)),))
    assert compiled.modules[0].signatures["k"] == bytes(12)


@pytest.mark.parametrize(
    "before",
    [
        '#warning "ptxas info    : Compiling entry function \'k"\n',
        "[[deprecated(\"\\nptxas info    : Compiling entry function 'k' for\\nptxas info    : Used 999 registers\")]]"
        " __device__ int f() { return 1; } __device__ int g() { return f(); }\n",
    ],
    ids=["a quote is open", "figures of its own"],
)
def test_the_texts_own_words_are_no_report(compiler, before):
    assert compile_text(compiler, before + HONEST).reports == compile_text(compiler, HONEST).reports


def test_a_log_without_figures_is_the_evaluators_error():
    log = "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Compile time = 1 ms"
    for text in ("", log):
        with pytest.raises(ProgramFault, match="no registers of kernel 'k'") as caught:
            compilation._reports(text, {"k": "k"})
        assert caught.value.fault.outcome is Outcome.EVALUATOR_ERROR


def test_spills_and_shared_bytes_of_a_report():
    log = """ptxas info    : Compiling entry function '_Z1kv' for 'sm_90'
ptxas info    : Function properties for _Z1kv
{}     24 bytes stack frame, 20 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'other' for 'sm_90'
ptxas info    : Used 8 registers"""
    for spelling in ("ptxas         .", ""):
        reports = compilation._reports(log.format(spelling), {"k": "_Z1kv"})
        assert reports == {"k": compilation.KernelReport(registers=40, spills=32, shared_bytes=1024)}


@pytest.mark.parametrize("character", [chr(0xD800), chr(0xDFFF), chr(0)], ids=["high", "low", "zero"])
def test_what_is_no_character_is_named_and_the_compiler_lives(compiler, character):
    compiler.start()
    process = compiler._process.pid
    found = fault(compiler, HONEST + f"// {character}\n")
    assert (found.outcome, found.message[:21]) == (Outcome.COMPILE_ERROR, "kernel text line 2: U")
    assert compile_text(compiler, HONEST + f"// {character!r} is an escape\n").cubin
    assert compiler._process.pid == process


def test_messages_that_are_no_utf_8_leave_the_compiler_alive(compiler):
    compiler.start()
    process = compiler._process.pid
    source = '[[deprecated("\\xff\\xfe")]] __device__ int f() { return 1; }\n' + HONEST.replace("= 1", "= f()")
    found = fault(compiler, source)
    assert found.outcome is Outcome.COMPILE_ERROR
    assert "UTF-8" in found.message
    assert compile_text(compiler, HONEST).cubin
    assert compiler._process.pid == process


def test_what_cannot_be_read_is_not_kept(compiler, monkeypatch):
    stored = []
    monkeypatch.setattr(object_cache, "store", lambda cache, key, data: stored.append(key))
    fault(compiler, TAKES_A_STRUCTURE + "#define sizeof(P) 8\n// not kept\n")
    assert stored == []
    compile_text(compiler, HONEST + "// kept\n")
    assert len(stored) == 1


@pytest.mark.parametrize("entry", [b"", b"{}\n", b'{"log": "", "lowered": {"k": "k"}}\n\x7fELF', b"[" * 9000])
def test_a_kept_entry_that_cannot_be_read_is_made_anew(compiler, entry):
    source = HONEST + f"// instead of {entry[:50]!r}\n"
    keys = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_cache, "store", lambda cache, key, data: keys.append((cache, key)))
        first = compile_text(compiler, source)
    bad = object_cache.store(*keys[0], entry)
    assert compile_text(compiler, source).cubin == first.cubin
    assert not bad.exists()
    assert compile_text(compiler, source).compile_ms == 0
