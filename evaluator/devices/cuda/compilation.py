"""From a plan's modules to cubins, through the disk cache: NVRTC's text, its messages, and what ptxas reports."""

import contextlib
import dataclasses
import hashlib
import json
import re
import struct
import time
from pathlib import Path

from evaluator.devices import object_cache
from evaluator.devices.cuda import cubin
from evaluator.devices.cuda.compiler import Compiled, Compiler, Rejected
from evaluator.program.cuda_tokens import tokenize
from evaluator.program.plan import Module, Plan
from evaluator.records import Outcome, ProgramFault, Rung

# As CuPy compiles a RawKernel, so that the file gives the same result there.
_OPTIONS = ("-ftz=true", "--device-as-default-execution-space", "--ptxas-options=-v")
_DEFAULT_STANDARD = "-std=c++17"
_SIGNATURE = "evaluator_signature_"  # and the number of the kernel
_POINTER, _STRUCTURE = 0, 7  # the first and the last kind; those between are numbers
_BEGINS = re.compile(r"ptxas info\s*: Compiling entry function '(?P<name>[^']*)'")
_FIGURES = re.compile(r"ptxas (info\s*: Used|\s*\.\s*\d+ bytes stack frame)|\s+\d+ bytes stack frame")

# Appended to a module's text: the kind and size of every kernel's parameters, as the compiler itself knows them. The
# kinds are those of `evaluator.devices.signature`.
_SIGNATURES = """
#line 1 "signatures"
namespace evaluator_signature {
template <class T> struct kind { enum { value = __is_enum(T) ? 1 : 7 }; };
template <class T> struct kind<T*> { enum { value = 0 }; };
template <> struct kind<bool> { enum { value = 6 }; };
template <> struct kind<char> { enum { value = 1 }; };
template <> struct kind<signed char> { enum { value = 1 }; };
template <> struct kind<short> { enum { value = 1 }; };
template <> struct kind<int> { enum { value = 1 }; };
template <> struct kind<long> { enum { value = 1 }; };
template <> struct kind<long long> { enum { value = 1 }; };
template <> struct kind<unsigned char> { enum { value = 2 }; };
template <> struct kind<unsigned short> { enum { value = 2 }; };
template <> struct kind<unsigned int> { enum { value = 2 }; };
template <> struct kind<unsigned long> { enum { value = 2 }; };
template <> struct kind<unsigned long long> { enum { value = 2 }; };
template <> struct kind<float> { enum { value = 3 }; };
template <> struct kind<double> { enum { value = 3 }; };
#ifdef __CUDA_FP16_TYPES_EXIST__
template <> struct kind<__half> { enum { value = 4 }; };
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
template <> struct kind<__nv_bfloat16> { enum { value = 5 }; };
#endif
template <class T> struct bare { using type = T; };
template <class T> struct bare<const T> { using type = T; };
struct parameter { int kind, bytes; };
template <int count_> struct record { int count; parameter parameters[count_ + 1]; };
template <class F> struct of;
template <class... P> struct of<void (*)(P...)> {
  static constexpr record<sizeof...(P)> parameters() {
    return {sizeof...(P), {{kind<typename bare<P>::type>::value, sizeof(P)}..., {0, 0}}};
  }
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
    globals: tuple[str, ...]  # all that kernels can write: variables, literals ($str), our own records, by name
    compile_ms: float  # 0 where it came from the cache


def compile_module(compiler: Compiler, module: Module, architecture: int) -> CompiledModule:
    """One module for sm_<architecture>. Raises ProgramFault `compile_error`, `timeout` or `evaluator_error`."""
    compiler.start()
    options = _options(module, architecture)
    text = module.source + _signatures(module)
    cache = object_cache.folder("cuda")
    key = hashlib.sha256(repr((text, options, module.kernels, compiler.identity)).encode()).hexdigest()
    known = _cached(module, cache, key)
    if known is not None:
        return known
    started = time.perf_counter()
    try:
        made = compiler.compile(text, "kernel.cu", options, module.kernels)
        parsed = _parsed(module, made, 1e3 * (time.perf_counter() - started))
    except Rejected as error:
        message = first_error(error.fault.message, module)
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message) from error
    except ValueError as error:
        raise compiler.lost("kernel.cu", f"its cubin cannot be read: {error}") from error
    object_cache.store(cache, key, _packed(made))  # only what could be read
    return parsed


def compile_modules(compiler: Compiler, plan: Plan, architecture: int) -> list[CompiledModule]:
    """Every module of a plan, in order."""
    return [compile_module(compiler, module, architecture) for module in plan.modules]


def first_error(log: str, module: Module) -> str:
    """The first error of NVRTC's log, with the line of the kernel text that it is about."""
    for match in re.finditer(
        r"^(?P<file>[^\n(]+)\((?P<line>\d{1,9})\): (?:catastrophic )?error: (?P<text>[^\n]*)", log, re.M
    ):
        number, source = int(match["line"]), module.source.split("\n")
        if match["file"] == "kernel.cu" and number <= len(source):
            return f"kernel text line {number}: {match['text'][:300]} | {source[number - 1].strip()[:120]}"
        if match["file"] == "signatures" and _unbalanced(module.source):
            return "error: the braces of the kernel text do not match"
        return f"{match['file'].rsplit('/', 1)[-1]}: {match['text'][:300]}"
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
        record = f"evaluator_signature::of<decltype(&{kernel})>::parameters()"
        lines.append(f'extern "C" __device__ auto {_SIGNATURE}{number} = {record};')
    return "\n".join(lines) + "\n"


def _cached(module: Module, cache: Path, key: str) -> CompiledModule | None:
    entry = object_cache.find(cache, key)
    if entry is None:
        return None
    with contextlib.suppress(OSError):  # another process has just made room
        try:
            return _parsed(module, _unpacked(entry.read_bytes()), 0.0)
        except (ValueError, ProgramFault):  # another version of this file wrote it
            entry.unlink(missing_ok=True)
    return None


def _packed(made: Compiled) -> bytes:
    """A cache entry: one line of JSON, then the cubin."""
    return json.dumps({"log": made.log, "lowered": made.lowered}).encode() + b"\n" + made.cubin


def _unpacked(data: bytes) -> Compiled:
    head, _, binary = data.partition(b"\n")
    try:
        return Compiled.checked(json.loads(head), binary)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _parsed(module: Module, made: Compiled, compile_ms: float) -> CompiledModule:
    """ValueError where the cubin cannot be read, ProgramFault where it is not what it should be."""
    found = {variable.name: variable for variable in cubin.variables(made.cubin)}
    sizes = cubin.parameter_sizes(made.cubin)
    kernels = list(dict.fromkeys(module.kernels))
    lowered = {kernel: _entry(kernel, made.lowered, sizes) for kernel in kernels}
    records = {kernel: found.get(f"{_SIGNATURE}{number}") for number, kernel in enumerate(kernels)}
    return CompiledModule(
        cubin=made.cubin,
        lowered=lowered,
        signatures={kernel: _record(made.cubin, kernel, records[kernel], sizes[lowered[kernel]]) for kernel in kernels},
        reports=_reports(made.log, lowered),
        globals=tuple(name for name, variable in found.items() if variable.writable),
        compile_ms=compile_ms,
    )


def _entry(kernel: str, lowered: dict[str, str], sizes: dict[str, tuple[int, ...]]) -> str:
    if kernel not in lowered:
        raise ValueError(f"no name for {kernel!r}")
    if lowered[kernel] not in sizes:
        message = f"{kernel!r} is no kernel of the compiled text: declare it __global__ and define it"
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
    return lowered[kernel]


def _record(binary: bytes, kernel: str, variable: cubin.Variable | None, sizes: tuple[int, ...]) -> bytes:
    """The record of a kernel's parameters, whose sizes are those of the cubin: a macro of the text can rewrite ours."""
    if variable is not None and variable.nbytes == 4 + 8 * (len(sizes) + 1):
        record = cubin.contents(binary, variable)
        count, *words = struct.unpack(f"<{len(record) // 4}i", record)
        if count == len(sizes) and all(map(_possible, words[:-2:2], words[1:-2:2], sizes)):
            return record
    message = (
        f"kernel {kernel!r} has parameters of {list(sizes)} bytes in the cubin, but the compiler's own text says "
        "otherwise: define no macros with names of C++ (sizeof, template, constexpr, ...) and take no references"
    )
    raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)


def _possible(kind: int, recorded: int, nbytes: int) -> bool:
    """Whether a parameter of `nbytes` can be what the record says: arguments are pointers or numbers, of a word."""
    fits = {_POINTER: nbytes == 8, _STRUCTURE: True}.get(kind, _POINTER < kind < _STRUCTURE and nbytes <= 8)
    return recorded == nbytes and fits


def _reports(log: str, lowered: dict[str, str]) -> dict[str, KernelReport]:
    """ptxas' figures by the plan's kernel names. The log begins with messages that the text may have chosen."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in log.split("\n"):
        if begun := _BEGINS.match(line):
            lines = parts[begun["name"]] = []  # ptxas speaks last
        elif _FIGURES.match(line):
            lines.append(line)
    return {kernel: _report(kernel, "\n".join(parts.get(name, []))) for kernel, name in lowered.items()}


def _report(kernel: str, lines: str) -> KernelReport:
    registers = re.search(r"Used (\d{1,9}) registers", lines)
    if registers is None:
        message = f"ptxas reports no registers of kernel {kernel!r}: this NVRTC prints them in another form"
        raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)
    shared = re.search(r"(\d{1,9}) bytes smem", lines)
    spills = re.findall(r"(\d{1,9}) bytes spill (?:stores|loads)", lines)
    return KernelReport(
        registers=int(registers[1]),
        spills=sum(map(int, spills)),
        shared_bytes=int(shared[1]) if shared else 0,
    )
