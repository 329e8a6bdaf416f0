"""What this machine can judge on, what is missing and how to get it, and how noisy it is."""

import os
import platform
import sys
from collections.abc import Callable, Iterable

from evaluator import _core, confinement
from evaluator.devices import installed, toolchain
from evaluator.devices.cuda import machine, readiness
from evaluator.devices.finding import Finding
from evaluator.records import EVALUATOR_VERSION, Interval, ProgramFault, Verdict
from evaluator.tasks.task import Task


def examine() -> list[Finding]:
    """Everything but noise, in a few milliseconds."""
    return [
        Finding("evaluator", f"{EVALUATOR_VERSION}, Python {platform.python_version()}, {platform.machine()}"),
        _cores(),
        _compiler(),
        _runner(),
        _sandbox(),
        *readiness.findings(machine.read()),
    ]


def missing_for(device: str, tasks: Iterable[Task] = (), size: str = "") -> str | None:
    """Why programs for `tasks` at `size` cannot be judged on `device` here, with the cure; None where they can.

    To be asked before any work.
    """
    if device == "cuda":
        return readiness.missing(machine.read(), tasks, size)
    for finding in (_compiler(), _runner()):
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


def _sandbox() -> Finding:
    if not sys.platform.startswith("linux"):
        return Finding(
            "sandbox", f"{sys.platform} has no seccomp", "judge programs that you do not trust on Linux only"
        )
    if missing := confinement.missing():
        cures = {
            "landlock": "boot with lsm=landlock (Linux 5.13 or newer)",
            "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER, in a container that allows it",
        }
        lacking = f"without {', '.join(missing)}: docs/isolation.md says what still holds"
        return Finding("sandbox", lacking, "; ".join(cures[layer] for layer in missing if layer in cures))
    return Finding("sandbox", f"rlimits, seccomp, landlock ABI {_core.landlock_abi()}")
