"""From a plan's modules to cubins, through the disk cache: NVRTC's text, its messages, and what ptxas reports."""

import dataclasses
import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

from evaluator.devices import object_cache
from evaluator.devices.cuda import cubin
from evaluator.devices.cuda.compiler import Compiled, Compiler
from evaluator.program.cuda_tokens import tokenize
from evaluator.program.plan import Module, Plan
from evaluator.records import Outcome, ProgramFault, Rung

# As CuPy compiles a RawKernel, so that the file gives the same result there.
_OPTIONS = ("-ftz=true", "--device-as-default-execution-space", "--ptxas-options=-v")
_DEFAULT_STANDARD = "-std=c++17"
_SIGNATURE = "evaluator_signature_"  # and the number of the kernel
# Ours, whose prefix the screen keeps programs from using, and texts for printf.
_NOT_THE_PROGRAMS = re.compile(r"evaluator_signature_\d+|_ZN19evaluator_signature\w+|\$str(\$\d+)?|__unnamed_\d+")

# Appended to a module's text: the kind and size of every kernel's parameters, as the compiler itself knows them. The
# kinds are those of `evaluator.devices.signature`.
_SIGNATURES = """
#line 1 "signatures"
namespace evaluator_signature {
template <class T> struct kind { static constexpr int value = __is_enum(T) ? 1 : 7; };
template <class T> struct kind<T*> { static constexpr int value = 0; };
template <> struct kind<bool> { static constexpr int value = 6; };
template <> struct kind<char> { static constexpr int value = 1; };
template <> struct kind<signed char> { static constexpr int value = 1; };
template <> struct kind<short> { static constexpr int value = 1; };
template <> struct kind<int> { static constexpr int value = 1; };
template <> struct kind<long> { static constexpr int value = 1; };
template <> struct kind<long long> { static constexpr int value = 1; };
template <> struct kind<unsigned char> { static constexpr int value = 2; };
template <> struct kind<unsigned short> { static constexpr int value = 2; };
template <> struct kind<unsigned int> { static constexpr int value = 2; };
template <> struct kind<unsigned long> { static constexpr int value = 2; };
template <> struct kind<unsigned long long> { static constexpr int value = 2; };
template <> struct kind<float> { static constexpr int value = 3; };
template <> struct kind<double> { static constexpr int value = 3; };
#ifdef __CUDA_FP16_TYPES_EXIST__
template <> struct kind<__half> { static constexpr int value = 4; };
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
template <> struct kind<__nv_bfloat16> { static constexpr int value = 5; };
#endif
template <class T> struct bare { using type = T; };
template <class T> struct bare<const T> { using type = T; };
struct parameter { int kind, bytes; };
template <int count_> struct record { int count; parameter parameters[count_ + 1]; };
template <class F> struct of;
template <class... P> struct of<void (*)(P...)> {
  static constexpr record<sizeof...(P)> value = {
      sizeof...(P), {{kind<typename bare<P>::type>::value, sizeof(P)}..., {0, 0}}};
};
}
"""


@dataclasses.dataclass(frozen=True)
class KernelReport:
    """What ptxas says of one kernel."""

    registers: int
    spills: int  # bytes stored and loaded because registers did not suffice
    shared_bytes: int  # static


@dataclasses.dataclass(frozen=True)
class CompiledModule:
    """One module's cubin, for one architecture."""

    cubin: bytes
    lowered: dict[str, str]  # the plan's kernel name -> name in the cubin
    signatures: dict[str, bytes]  # the plan's kernel name -> record of its parameters
    reports: dict[str, KernelReport]
    globals: tuple[str, ...]  # variables that kernels can write, by name in the cubin
    compile_ms: float  # 0 where it came from the cache


def compile_module(compiler: Compiler, module: Module, architecture: int) -> CompiledModule:
    """One module for sm_<architecture>. Raises ProgramFault `compile_error`, `timeout` or `evaluator_error`."""
    compiler.start()
    options = _options(module, architecture)
    text = module.source + _signatures(module)
    cache = object_cache.folder("cuda")
    key = hashlib.sha256(repr((text, options, module.kernels, compiler.identity)).encode()).hexdigest()
    known = _cached(cache, key)
    if known is not None:
        return _parsed(module, known, 0.0)
    started = time.perf_counter()
    try:
        made = compiler.compile(text, "kernel.cu", options, module.kernels)
    except ProgramFault as error:
        if error.fault.outcome is not Outcome.COMPILE_ERROR:
            raise
        message = first_error(error.fault.message, module)
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message) from error
    data = _packed(made)
    object_cache.store(cache, key, data)
    return _parsed(module, data, 1e3 * (time.perf_counter() - started))


def compile_modules(compiler: Compiler, plan: Plan, architecture: int) -> list[CompiledModule]:
    """Every module of a plan, in order."""
    return [compile_module(compiler, module, architecture) for module in plan.modules]


def first_error(log: str, module: Module) -> str:
    """The first error of NVRTC's log, with the line of the kernel text that it is about."""
    for match in re.finditer(
        r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>[^\n]*)", log, re.M
    ):
        number, source = int(match["line"]), module.source.split("\n")
        if match["file"] == "kernel.cu" and number <= len(source):
            return f"kernel text line {number}: {match['text']} | {source[number - 1].strip()[:120]}"
        if match["file"] == "signatures" and _unbalanced(module.source):
            return "error: the braces of the kernel text do not match"
        return f"{match['file'].rsplit('/', 1)[-1]}: {match['text']}"
    found = re.search(r"(?:error|fatal)\s*:?\s*([^\n]*)", log)
    return found[0][:300] if found else log.strip()[:300]


def _unbalanced(source: str) -> bool:
    texts = [token.text for token in tokenize(source)]
    return texts.count("{") != texts.count("}")


def _options(module: Module, architecture: int) -> tuple[str, ...]:
    chosen = any(re.match(r"--?std=", option) for option in module.options)
    return (f"-arch=sm_{architecture}", *_OPTIONS, *(() if chosen else (_DEFAULT_STANDARD,)), *module.options)


def _signatures(module: Module) -> str:
    """Text that puts a record of each kernel's parameters into the cubin."""
    lines = [_SIGNATURES]
    for number, kernel in enumerate(dict.fromkeys(module.kernels)):
        record = f"evaluator_signature::of<decltype(&{kernel})>::value"
        lines.append(f'extern "C" __device__ auto {_SIGNATURE}{number} = {record};')
    return "\n".join(lines) + "\n"


def _cached(cache: Path, key: str) -> bytes | None:
    entry = object_cache.find(cache, key)
    try:
        return None if entry is None else entry.read_bytes()
    except OSError:  # another process has just made room
        return None


def _packed(made: Compiled) -> bytes:
    """A cache entry: one line of JSON, then the cubin."""
    return json.dumps({"log": made.log, "lowered": made.lowered}).encode() + b"\n" + made.cubin


def _parsed(module: Module, data: bytes, compile_ms: float) -> CompiledModule:
    head, _, binary = data.partition(b"\n")
    facts = json.loads(head)
    found = {variable.name: variable for variable in cubin.variables(binary)}
    reports = dict(_reports(facts["log"]))
    kernels = list(dict.fromkeys(module.kernels))
    return CompiledModule(
        cubin=binary,
        lowered={kernel: facts["lowered"][kernel] for kernel in kernels},
        signatures={kernel: _contents(found[f"{_SIGNATURE}{number}"]) for number, kernel in enumerate(kernels)},
        reports={kernel: reports[facts["lowered"][kernel]] for kernel in kernels},
        globals=tuple(
            name for name, variable in found.items() if variable.writable and not _NOT_THE_PROGRAMS.fullmatch(name)
        ),
        compile_ms=compile_ms,
    )


def _contents(variable: cubin.Variable) -> bytes:
    assert variable.contents is not None
    return variable.contents


def _reports(log: str) -> Iterator[tuple[str, KernelReport]]:
    """ptxas' figures by name in the cubin."""
    for part in log.split("Compiling entry function '")[1:]:
        name = part[: part.index("'")]
        registers = re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", part)
        yield (
            name,
            KernelReport(
                registers=int(registers[1]) if registers else 0,
                spills=sum(map(int, spills)),
                shared_bytes=int(shared[1]) if shared else 0,
            ),
        )
