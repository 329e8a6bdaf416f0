"""From a plan's modules to one shared object, through the disk cache."""

import dataclasses
import hashlib
import pathlib
import re
import tempfile
import time

from evaluator.devices import device_functions, elf, object_cache, toolchain
from evaluator.devices.lowering import Lowered, lower
from evaluator.devices.toolchain import CompilerRun, Toolchain
from evaluator.program.plan import Module, Plan
from evaluator.records import Limits, Outcome, ProgramFault, Rung

_STANDARDS = {"11": "c++17", "14": "c++17", "17": "c++17", "20": "c++20", "23": "c++20"}
_KERNEL_NAME = re.compile(r"[\w:<>,\s*&()+.\-]+")
_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class CompiledObject:
    """One object that holds every kernel of a plan."""

    path: pathlib.Path
    facts: elf.Object
    kernel_numbers: dict[tuple[int, str], int]  # (module, kernel) -> number of its exports
    compile_ms: float  # wall time; 0 where the object came from the cache


def compile_modules(plan: Plan, limits: Limits) -> CompiledObject:
    """Raises ProgramFault `compile_error`, `unsupported`, `timeout` or `evaluator_error`."""
    tools = toolchain.find()
    cache = object_cache.folder()
    numbers: dict[tuple[int, str], int] = {}
    for index, module in enumerate(plan.modules):
        for kernel in module.kernels:
            if not _KERNEL_NAME.fullmatch(kernel):
                raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, f"{kernel!r} is no kernel's name")
            numbers.setdefault((index, kernel), len(numbers))
    key = _key(plan, tools)
    if (path := object_cache.find(cache, key)) is not None:
        return CompiledObject(path, elf.read(path.read_bytes()), numbers, 0.0)
    started = time.perf_counter()
    data = _compile(plan, numbers, tools, cache, limits)
    facts = _checked(data)
    path = object_cache.store(cache, key, data)
    return CompiledObject(path, facts, numbers, 1e3 * (time.perf_counter() - started))


def _key(plan: Plan, tools: Toolchain) -> str:
    digest = hashlib.sha256(tools.key().encode())
    for module in plan.modules:
        digest.update(repr((module.source, module.options, module.kernels)).encode())
    return digest.hexdigest()


def _checked(data: bytes) -> elf.Object:
    """Facts of a fresh object. Nothing of a program may run while it is loaded."""
    facts = elf.read(data)
    if facts.runs_code_on_load:
        message = "a variable outside functions needs code to initialise it; device code allows constants only"
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
    if names := device_functions.foreign(facts.imports):
        message = f"device code cannot call {', '.join(names[:3])}: it is neither defined here nor a device function"
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
    if facts.thread_local_initialised:
        message = "a __shared__ variable has an initial value; device code must assign it"
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
    return facts


def _standard(module: Module) -> str:
    for option in module.options:
        if match := re.fullmatch(r"-{1,2}std=(?:c|gnu)\+\+(\d\d)", option):
            return _STANDARDS.get(match[1], "c++17")
    return "c++17"


def _definitions(module: Module) -> list[str]:
    """-D options as preprocessor lines."""
    lines = []
    options = iter(module.options)
    for option in options:
        if option in ("-D", "--define-macro"):
            option = "-D" + next(options, "")
        if match := re.fullmatch(r"(?:-D|--define-macro=)(\w+)(?:=([^\n]*))?", option):
            lines.append(f"#define {match[1]} {1 if match[2] is None else match[2]}")
    return lines


def _unit(plan: Plan, modules: list[int], numbers: dict[tuple[int, str], int], lowered: dict[int, Lowered]) -> str:
    """One translation unit: each module in a namespace of its own, its macros undefined behind it."""
    lines = list(dict.fromkeys(include for index in modules for include in lowered[index].includes))
    exports = []
    for index in modules:
        module, text = plan.modules[index], lowered[index]
        definitions = _definitions(module)
        lines += [*definitions, f"namespace {{ namespace emulator_module_{index} {{", f'#line 1 "kernel_{index}.cu"']
        lines.append(text.text)
        for kernel in dict.fromkeys(module.kernels):
            number = numbers[index, kernel]
            lines += [f'#line {number + 1} "exports"', f"constexpr auto emulator_target_{number} = &{kernel};"]
            exports.append(f"EMULATOR_EXPORT_KERNEL({number}, emulator_module_{index}::emulator_target_{number})")
        lines.append("}}")
        macros = [*text.macros, *(line.split()[1] for line in definitions)]
        lines += [f"#undef {macro}" for macro in dict.fromkeys(macros)]
    return "\n".join([*lines, '#line 1 "entries"', *exports, ""])


def _compile(
    plan: Plan, numbers: dict[tuple[int, str], int], tools: Toolchain, cache: pathlib.Path, limits: Limits
) -> bytes:
    lowered = {index: lower(module.source) for index, module in enumerate(plan.modules)}
    indices = sorted(lowered)
    standards = {_standard(module) for module in plan.modules} or {"c++17"}
    together = [indices] if len(standards) == 1 else [[index] for index in indices]
    with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as name:
        folder = pathlib.Path(name)

        def build(units: list[list[int]]) -> tuple[CompilerRun, bytes]:
            return _build(plan, units, numbers, lowered, tools, cache, folder, limits)

        run, data = build(together)
        if run.exit_code != 0 and len(indices) > 1 and len(together) == 1:
            # Modules may disagree in ways that namespaces do not hide; on their own each must compile.
            run, data = build([[index] for index in indices])
        if run.exit_code != 0:
            raise _compile_fault(plan, numbers, run, limits)
        return data


def _build(
    plan: Plan,
    units: list[list[int]],
    numbers: dict[tuple[int, str], int],
    lowered: dict[int, Lowered],
    tools: Toolchain,
    cache: pathlib.Path,
    folder: pathlib.Path,
    limits: Limits,
) -> tuple[CompilerRun, bytes]:
    """Compile and link; the object's bytes are empty where that failed."""
    link = ["-shared", "-nostdlib", "-Wl,-z,now", "-Wl,--hash-style=gnu"]
    objects: list[str] = []
    for number, unit in enumerate(units or [[]]):
        standard = _standard(plan.modules[unit[0]]) if unit else "c++17"
        shim = toolchain.precompiled_shim(tools, cache, standard)
        source = folder / f"unit_{number}.cpp"
        source.write_text(_unit(plan, unit, numbers, lowered))
        command = [tools.compiler, *tools.flags, f"-std={standard}", *toolchain.shim_arguments(tools, shim)]
        single = len(units) <= 1
        target = folder / ("program.so" if single else f"unit_{number}.o")
        mode = [*link, str(source), "-lgcc"] if single else ["-c", str(source)]
        run = toolchain.run_confined(tools, [*command, *mode, "-o", str(target)], [shim], folder, limits.compile_s)
        if run.exit_code != 0:
            return run, b""
        objects.append(str(target))
    if len(objects) > 1:
        command = [tools.compiler, *link, *objects, "-lgcc", "-o", str(folder / "program.so")]
        run = toolchain.run_confined(tools, command, [], folder, limits.compile_s)
        if run.exit_code != 0:
            return run, b""
    return run, (folder / "program.so").read_bytes()


def _compile_fault(plan: Plan, numbers: dict[tuple[int, str], int], run: CompilerRun, limits: Limits) -> ProgramFault:
    """The first error in the program's own words."""
    if run.exit_code in (125, 126):
        return ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, run.errors.strip()[:300])
    if run.exit_code < 0 or "Killed signal" in run.errors or "CPU time limit" in run.errors:
        message = f"compilation was ended after {limits.compile_s:g} s of CPU time"
        return ProgramFault(Outcome.TIMEOUT, Rung.COMPILE, message)
    if "No space left on device" in run.errors:
        return ProgramFault(
            Outcome.EVALUATOR_ERROR, Rung.COMPILE, "the disk is full: free some space in the cache folder"
        )
    kernels = {number: kernel for (_, kernel), number in numbers.items()}
    for match in _ERROR.finditer(run.errors):
        line = int(match["line"])
        if module := re.fullmatch(r"kernel_(\d+)\.cu", match["file"]):
            text = plan.modules[int(module[1])].source.splitlines()
            shown = text[line - 1].strip() if line <= len(text) else ""
            message = f"kernel text line {line}: {match['text']}" + (f" | {shown[:120]}" if shown else "")
            return ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
        if match["file"] == "exports":
            message = f"kernel {kernels[line - 1]!r}: {match['text'].replace('emulator_target_', 'kernel ')}"
            return ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
    first = re.search(r"error: (.*)", run.errors)
    message = first[1] if first else run.errors.strip()[:300] or f"the compiler ended with {run.exit_code}"
    return ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)
