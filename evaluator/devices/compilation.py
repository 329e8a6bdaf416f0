"""From a plan's modules to one shared object, through the disk cache."""

import dataclasses
import hashlib
import pathlib
import re
import tempfile
import time

from evaluator.devices import compile_errors, device_functions, elf, object_cache, toolchain, translation_unit
from evaluator.devices.launches import STATIC_SHARED_BYTES
from evaluator.devices.lowering import Lowered, lower
from evaluator.devices.toolchain import CompilerRun, Toolchain
from evaluator.devices.translation_unit import Kernel
from evaluator.program.plan import Plan
from evaluator.records import Limits, Outcome, ProgramFault, Rung

_KERNEL_NAME = re.compile(r"[\w:<>,\s*&()+.\-]+")
_LINK = ("-shared", "-nostdlib", "-Wl,-z,now", "-Wl,--hash-style=gnu")


@dataclasses.dataclass(frozen=True)
class CompiledObject:
    """One object that holds every kernel of a plan."""

    path: pathlib.Path
    facts: elf.Object
    kernel_numbers: dict[Kernel, int]  # numbers of the kernels' exports
    static_shared_bytes: dict[Kernel, int]
    compile_ms: float  # wall time; 0 where the object came from the cache


@dataclasses.dataclass(frozen=True)
class _Job:
    """One compilation: what every step of it needs."""

    plan: Plan
    numbers: dict[Kernel, int]
    lowered: tuple[Lowered, ...]
    tools: Toolchain
    cache: pathlib.Path
    folder: pathlib.Path  # for its files, removed afterwards
    limits: Limits


def compile_modules(plan: Plan, limits: Limits) -> CompiledObject:
    """Raises ProgramFault `compile_error`, `unsupported`, `timeout` or `evaluator_error`."""
    tools, cache = toolchain.find(), object_cache.folder("emulator")
    numbers = _kernel_numbers(plan)
    key = _key(plan, tools)
    started = time.perf_counter()
    path = object_cache.find(cache, key)
    if path is not None:
        facts, compile_ms = elf.read(path.read_bytes()), 0.0
    else:
        data = _compile(plan, numbers, tools, cache, limits)
        facts = _checked(data)
        path = object_cache.store(cache, key, data)
        compile_ms = 1e3 * (time.perf_counter() - started)
    shared = _static_shared(plan, facts, numbers, limits)
    return CompiledObject(path, facts, numbers, shared, compile_ms)


def _kernel_numbers(plan: Plan) -> dict[Kernel, int]:
    numbers: dict[Kernel, int] = {}
    for index, module in enumerate(plan.modules):
        for kernel in module.kernels:
            if not _KERNEL_NAME.fullmatch(kernel):
                raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, f"{kernel!r} is no kernel's name")
            numbers.setdefault((index, kernel), len(numbers))
    return numbers


def _key(plan: Plan, tools: Toolchain) -> str:
    digest = hashlib.sha256(repr((tools.key(), translation_unit.POISONED)).encode())
    for module in plan.modules:
        digest.update(repr((module.source, module.options, module.kernels)).encode())
    return digest.hexdigest()


def _static_shared(plan: Plan, facts: elf.Object, numbers: dict[Kernel, int], limits: Limits) -> dict[Kernel, int]:
    """Static shared memory of each kernel. The object's own figure is that of all its kernels together."""
    if facts.thread_local_bytes <= STATIC_SHARED_BYTES or len(numbers) == 1:
        return dict.fromkeys(numbers, facts.thread_local_bytes)
    shared = {}
    for index, kernel in numbers:
        alone = dataclasses.replace(plan.modules[index], kernels=(kernel,))
        only = compile_modules(dataclasses.replace(plan, modules=(alone,), steps=()), limits)
        shared[index, kernel] = only.facts.thread_local_bytes
    return shared


def _checked(data: bytes) -> elf.Object:
    """Facts of a fresh object. Nothing of a program may run while it is loaded."""
    facts = elf.read(data)
    problem = None
    if facts.runs_code_on_load:
        problem = "a variable outside functions needs code to initialise it; device code allows constants only"
    elif names := device_functions.foreign(facts.imports):
        problem = f"device code cannot call {', '.join(names[:3])}: it is neither defined here nor a device function"
    elif facts.thread_local_initialised:
        problem = "a __shared__ variable cannot have an initial value"
    if problem:
        raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, problem)
    return facts


def _compile(plan: Plan, numbers: dict[Kernel, int], tools: Toolchain, cache: pathlib.Path, limits: Limits) -> bytes:
    lowered = tuple(lower(module.source) for module in plan.modules)
    apart = [[index] for index in range(len(plan.modules))]
    together = [list(range(len(plan.modules)))]
    one_standard = len({translation_unit.standard(module) for module in plan.modules}) <= 1
    with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as name:
        job = _Job(plan, numbers, lowered, tools, cache, pathlib.Path(name), limits)
        run, data = _build(job, together if one_standard else apart)
        if run.exit_code != 0 and one_standard and len(apart) > 1:
            # Modules may disagree in ways that namespaces do not hide; on their own each must compile.
            run, data = _build(job, apart)
        if run.exit_code != 0:
            raise compile_errors.fault(plan, [kernel for _, kernel in numbers], run, limits)
        return data


def _build(job: _Job, units: list[list[int]]) -> tuple[CompilerRun, bytes]:
    """Compile and link; the object's bytes are empty where that failed."""
    program = job.folder / "program.so"
    if len(units) == 1:
        run = _compile_unit(job, units[0], program, list(_LINK), ["-lgcc"])
        return run, program.read_bytes() if run.exit_code == 0 else b""
    objects = []
    for unit in units:
        objects.append(job.folder / f"unit_{unit[0]}.o")
        run = _compile_unit(job, unit, objects[-1], ["-c"], [])
        if run.exit_code != 0:
            return run, b""
    command = [job.tools.compiler, *_LINK, *map(str, objects), "-lgcc", "-o", str(program)]
    run = _run(job, command, [])
    return run, program.read_bytes() if run.exit_code == 0 else b""


def _compile_unit(
    job: _Job, unit: list[int], target: pathlib.Path, mode: list[str], libraries: list[str]
) -> CompilerRun:
    modules = {index: job.plan.modules[index] for index in unit}
    standard = translation_unit.standard(modules[unit[0]]) if unit else "c++17"
    shim = toolchain.precompiled_shim(job.tools, job.cache, standard)
    source = target.with_suffix(".cpp")
    source.write_text(translation_unit.write(modules, job.lowered, job.numbers))
    command = [job.tools.compiler, *job.tools.flags, f"-std={standard}", *toolchain.shim_arguments(job.tools, shim)]
    command += [*mode, str(source), *libraries, "-o", str(target)]
    return _run(job, command, [shim])


def _run(job: _Job, command: list[str], readable: list[pathlib.Path]) -> CompilerRun:
    limits = job.limits
    return toolchain.run_confined(job.tools, command, readable, job.folder, limits.compile_s, limits.confinement)
