"""What this machine can judge on, what is missing and how to get it, and how noisy it is."""

import ctypes
import dataclasses
import importlib.util
import os
import platform
import sys
from collections.abc import Callable

from evaluator import _core
from evaluator.devices import installed, toolchain
from evaluator.devices.cuda import toolkit
from evaluator.records import EVALUATOR_VERSION, Interval, ProgramFault, Verdict


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    seen: str
    cure: str | None = None  # what to do where something is missing; None where all is well


def examine() -> list[Finding]:
    """Everything but noise, in a few milliseconds."""
    return [
        Finding("evaluator", f"{EVALUATOR_VERSION}, Python {platform.python_version()}, {platform.machine()}"),
        _cores(),
        _compiler(),
        _runner(),
        _landlock(),
        _driver(),
        _nvrtc(),
        _cupy(),
    ]


def missing_for(device: str) -> str | None:
    """Why `device` cannot be judged on here, with the cure; None where it can. To be asked before any work."""
    wanted = (_compiler(), _runner()) if device == "cpu" else (_driver(), _nvrtc(), _cupy())
    for finding in wanted:
        if finding.cure is not None:
            return f"device {device}: {finding.name}: {finding.seen}; {finding.cure}"
    return None


def noise(check: Callable[[], Verdict], repeats: int = 3) -> list[Interval]:
    """Speed-ups of a program against itself: what differs from 1 is noise of this machine."""
    verdicts = [check() for _ in range(repeats)]
    for verdict in verdicts:
        if not verdict.ok:
            raise RuntimeError(f"the program for the noise measurement is not ok: {verdict.outcome}: {verdict.message}")
    return [next(iter(verdict.speedups.values())) for verdict in verdicts]


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0]
    busy = f"; load {load:.1f}: other work makes times noisy" if load > 0.7 * usable else f"; load {load:.1f}"
    return Finding("cores", f"{usable} usable{busy}")


def _compiler() -> Finding:
    try:
        tools = toolchain.find()
    except ProgramFault:
        return Finding("compiler", "no C++ compiler found", "install g++ or clang++ (Debian: apt-get install g++)")
    return Finding("compiler", f"{tools.compiler}: {tools.version}")


def _runner() -> Finding:
    try:
        return Finding("emulator", str(installed.path("emulator-runner")))
    except ProgramFault as error:
        return Finding("emulator", str(error), "build the package again: pip install --editable .")


def _landlock() -> Finding:
    if not sys.platform.startswith("linux"):
        return Finding(
            "sandbox", f"{sys.platform} has no seccomp", "judge programs that you do not trust on Linux only"
        )
    abi = _core.landlock_abi()
    if abi == 0:
        return Finding(
            "sandbox", "rlimits and seccomp; this kernel has no landlock", "boot with lsm=landlock for a second wall"
        )
    return Finding("sandbox", f"rlimits, seccomp, landlock ABI {abi}")


def _driver() -> Finding:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        cure = "install an NVIDIA driver, or use --device=cpu"
        return Finding("NVIDIA driver", "libcuda.so.1 not found", cure)
    version, count = ctypes.c_int(), ctypes.c_int()
    status = (
        library.cuInit(0)
        or library.cuDriverGetVersion(ctypes.byref(version))
        or library.cuDeviceGetCount(ctypes.byref(count))
    )
    if status != 0 or count.value == 0:
        cure = "check that `nvidia-smi` lists a device, or use --device=cpu"
        return Finding("NVIDIA driver", f"libcuda.so.1 finds no usable GPU (status {status})", cure)
    return Finding("NVIDIA driver", f"CUDA {version.value // 1000}.{version.value % 1000 // 10}, {count.value} GPU(s)")


def _nvrtc() -> Finding:
    try:
        return Finding("NVRTC", toolkit.find().nvrtc)
    except ProgramFault:
        cure = "pip install 'cudal1-jax[cuda13]' (or cuda12, to match the driver)"
        return Finding("NVRTC", "libnvrtc not found", cure)


def _cupy() -> Finding:
    if importlib.util.find_spec("cupy") is None:
        return Finding("CuPy", "not installed", "pip install 'cudal1-jax[cuda13]' (or cuda12, to match the driver)")
    return Finding("CuPy", "installed")
