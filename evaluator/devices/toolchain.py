"""The host compiler: finding it, its flags, the precompiled shim, and one confined run of it."""

import dataclasses
import functools
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from evaluator import confinement
from evaluator.devices import bounded_run, installed
from evaluator.records import LAYERS, Outcome, ProgramFault, Rung

_COMPILER_MEMORY_BYTES = 4 << 30
_COMPILER_FILE_BYTES = 256 << 20
_COMPILER_STACK_BYTES = 64 << 20  # what gcc asks for itself, where it may
_MOST_ERROR_BYTES = 4 << 20
_CPU_SLACK_S = 0.2
_WALL_PER_CPU_SECOND = 8.0  # other work on the machine may take most of a core

# Undefined behaviour that the device does not have: wrapped integers, aliased pointers, dereferenced null pointers.
_FLAGS = (
    *("-O2", "-fPIC", "-w", "-g1"),
    *("-fno-strict-aliasing", "-fwrapv", "-fno-delete-null-pointer-checks"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *("-fno-exceptions", "-fno-rtti", "-fno-builtin-printf"),
    *("-fsanitize=bounds,alignment", "-fno-sanitize-recover=all"),
    *("-fstack-clash-protection", "-fno-stack-protector", "-fcf-protection=none"),
    *("-fvisibility=hidden", "-fno-plt", "-fno-asynchronous-unwind-tables"),
    "-ftls-model=initial-exec",  # shared memory at a fixed distance from the thread pointer; the runner makes room
)


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """One usable host compiler."""

    compiler: str  # absolute path
    version: str  # first line of --version
    is_clang: bool
    flags: tuple[str, ...]  # common to the shim and to programs

    def key(self) -> str:
        """Changes whenever an object compiled before could differ from one compiled now."""
        text = "\n".join((self.compiler, self.version, *self.flags, shim_sha256()))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class CompilerRun:
    """How one run of the compiler ended."""

    exit_code: int  # negative: the signal that ended it
    errors: str
    in_time: bool  # it ended before its limits of time were reached


@functools.cache
def shim_sha256() -> str:
    digest = hashlib.sha256()
    folder = installed.path("include")
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@functools.cache
def _machine_flags() -> tuple[str, ...]:
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    features = set(re.findall(r"\w+", next((line for line in text.splitlines() if line.startswith("flags")), "")))
    return ("-mavx2", "-mfma", "-mf16c", "-mbmi2", "-mpopcnt") if {"avx2", "fma", "f16c", "bmi2"} <= features else ()


@functools.cache
def find(preferred: str | None = None) -> Toolchain:
    """The compiler named by `preferred`, else by $CXX, else c++, g++ or clang++.

    Raises ProgramFault `evaluator_error` where there is none.
    """
    names = [preferred] if preferred else [os.environ.get("CXX", "").split(" ")[0], "c++", "g++", "clang++"]
    for name in names:
        found = shutil.which(name) if name else None
        if found is None:
            continue
        run = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False)
        if run.returncode == 0 and run.stdout:
            is_clang = "clang" in run.stdout
            flags = tuple(f for f in _FLAGS if not (is_clang and f == "-fno-builtin-printf")) + _machine_flags()
            if platform.machine() != "x86_64":
                flags = tuple(flag for flag in flags if flag != "-fcf-protection=none")
            return Toolchain(os.path.realpath(found), run.stdout.splitlines()[0], is_clang, flags)
    looked = ", ".join(name for name in names if name)
    message = f"no C++ compiler for the cpu device (looked for {looked}): install g++ (Debian, Ubuntu: apt install g++)"
    raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)


def _confinement(
    toolchain: Toolchain,
    readable: Sequence[pathlib.Path],
    folder: pathlib.Path,
    cpu_s: float,
    layers: Sequence[str] = LAYERS,
) -> list[str]:
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store"]
    own = [*_compilers_folders(pathlib.Path(toolchain.compiler)), installed.path("include"), *readable]
    words = [str(installed.path("confined-exec")), "--profile=compiler", "--write=/dev/null", f"--write={folder}"]
    words += [f"--read={path}" for path in (*system, *map(str, own))]
    words += [f"--limit=cpu_s={max(1, round(cpu_s))}", f"--limit=memory_bytes={_COMPILER_MEMORY_BYTES}"]
    words += [f"--limit=file_bytes={_COMPILER_FILE_BYTES}", f"--limit=stack_bytes={_COMPILER_STACK_BYTES}"]
    return [*words, f"--layers={','.join(confinement.checked(layers))}", "--"]


def _compilers_folders(compiler: pathlib.Path) -> list[pathlib.Path]:
    """Where the compiler's own files lie. A prefix that holds more than programs is not opened as a whole."""
    prefix = compiler.parent.parent
    if prefix in (pathlib.Path.home(), *pathlib.Path.home().parents):
        return [prefix / name for name in ("bin", "lib", "lib64", "libexec", "include")]
    return [prefix]


def run_confined(
    toolchain: Toolchain,
    arguments: list[str],
    readable: Sequence[pathlib.Path],
    folder: pathlib.Path,
    cpu_s: float,
    layers: Sequence[str] = LAYERS,
) -> CompilerRun:
    """Run a command in `folder` that may read system folders and `readable`, and write `folder` alone.

    Nothing that it started is left when this returns.
    """
    confinement.warn("the compiler", confinement.missing(layers))
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(folder), "LC_ALL": "C"}
    command = _confinement(toolchain, readable, folder, cpu_s, layers) + arguments
    wall_s = cpu_s * _WALL_PER_CPU_SECOND
    done = bounded_run.run(command, folder, environment, wall_s, _MOST_ERROR_BYTES)
    flooded = len(done.errors) > _MOST_ERROR_BYTES  # an end of our doing, and a fault of the text
    in_time = not done.expired and done.end.cpu_s < cpu_s - _CPU_SLACK_S
    return CompilerRun(1 if flooded else done.end.code, done.errors.decode("utf-8", "replace"), in_time)


def precompiled_shim(toolchain: Toolchain, cache: pathlib.Path, standard: str) -> pathlib.Path:
    """Folder with `cuda_emulator.hpp` and its precompiled form for this compiler, these flags and this C++ standard."""
    key = hashlib.sha256(f"{toolchain.key()} {standard}".encode()).hexdigest()[:32]
    folder = cache / f"shim-{key}"
    header = folder / "cuda_emulator.hpp"
    precompiled = folder / f"cuda_emulator.hpp{'.pch' if toolchain.is_clang else '.gch'}"
    if precompiled.exists():
        return folder
    folder.mkdir(exist_ok=True)
    header.write_text(f'#include "{installed.path("include")}/cuda_emulator.hpp"\n')
    with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as name:
        new = pathlib.Path(name) / "shim"
        command = [toolchain.compiler, *toolchain.flags, f"-std={standard}", "-x", "c++-header", str(header)]
        run = run_confined(toolchain, [*command, "-o", str(new)], [folder], pathlib.Path(name), 60.0)
        if run.exit_code != 0:
            message = f"the emulator's own headers do not compile with {toolchain.version}: {run.errors[:600]}"
            raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)
        os.replace(new, precompiled)  # whole or not at all; two processes write the same bytes
    return folder


def shim_arguments(toolchain: Toolchain, folder: pathlib.Path) -> list[str]:
    header = str(folder / "cuda_emulator.hpp")
    shim = ["-include-pch", header + ".pch"] if toolchain.is_clang else ["-include", header]
    return [*shim, "-I", str(installed.path("include"))]


def line_table(toolchain: Toolchain, object_path: pathlib.Path, address: int) -> str:
    """What addr2line says of an address in an object, inlined calls innermost first; "" where there is no such tool."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None:
        return ""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = _confinement(toolchain, [object_path], folder, 5.0)
        command = [*words, tool, "-i", "-e", str(object_path), hex(address)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=folder)
    return run.stdout
