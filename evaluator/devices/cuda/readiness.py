"""Whether a machine can judge on `cuda`, part by part, each with what to do where it cannot."""

import math
from collections.abc import Iterable

from evaluator.devices.cuda.machine import Machine, Package, Version
from evaluator.devices.finding import Finding
from evaluator.tasks.task import Task

OLDEST_DRIVER: Version = (12, 0)
_CONVOLVES = "nn.conv"  # in the text of tasks that need cuDNN
# A judged run holds the inputs three times at least, one of them in float64: as given, for the oracle, for the program.
_TIMES_THE_INPUTS = 4
_ITEM_BYTES = 4


def findings(machine: Machine) -> list[Finding]:
    """The parts in the order in which they are needed."""
    return [_driver(machine), _gpu(machine), _nvrtc(machine), _cupy(machine), _cudnn(machine)]


def missing(machine: Machine, tasks: Iterable[Task] = (), size: str = "") -> str | None:
    """Why programs for `tasks` at `size` cannot be judged on `cuda` here, with the cure; None where they can."""
    tasks = list(tasks)
    convolves = any(_CONVOLVES in task.source_at(size) for task in tasks)
    for finding in findings(machine):
        if finding.cure is not None and (finding.name != "cuDNN" or convolves):
            return f"device cuda: {finding.name}: {finding.seen}; {finding.cure}"
    return next(filter(None, (_too_large(machine, task, size) for task in tasks)), None)


def _driver(machine: Machine) -> Finding:
    driver = machine.driver
    if driver is None:
        return Finding("NVIDIA driver", "libcuda.so.1 not found", "install an NVIDIA driver, or use --device=cpu")
    seen = f"CUDA {_text(driver.cuda)}"
    if driver.status:
        cure = "check that `nvidia-smi` lists a device, or use --device=cpu"
        return Finding("NVIDIA driver", f"{seen}, which answers with status {driver.status}", cure)
    if driver.cuda < OLDEST_DRIVER:
        cure = f"install a driver for CUDA {_text(OLDEST_DRIVER)} or newer, or use --device=cpu"
        return Finding("NVIDIA driver", f"{seen} is too old", cure)
    return Finding("NVIDIA driver", seen)


def _gpu(machine: Machine) -> Finding:
    if machine.driver is None or not machine.driver.gpus:
        return Finding("GPU", "none", "check that `nvidia-smi` lists a device, or use --device=cpu")
    gpus = machine.driver.gpus
    seen = "; ".join(f"{gpu.name}, sm_{gpu.architecture}, {gpu.memory_bytes / 2**30:.0f} GiB" for gpu in gpus)
    known = machine.nvrtc.architectures if machine.nvrtc else ()
    first = gpus[0].architecture
    if known and first not in known:
        older = first < min(known)
        cure = "install the cuda12 extra, whose compiler knows older GPUs" if older else "install a newer NVRTC"
        than = f"{'older' if older else 'other'} than NVRTC compiles for ({', '.join(map(str, known))})"
        return Finding("GPU", f"{seen}: {than}", cure)
    return Finding("GPU", seen)


def _nvrtc(machine: Machine) -> Finding:
    if machine.nvrtc is None:
        return Finding("NVRTC", "libnvrtc not found", f"pip install '{_extra(machine)}'")
    seen = f"{_text(machine.nvrtc.cuda)}, {machine.nvrtc.path}"
    if machine.driver and machine.nvrtc.cuda[0] > machine.driver.cuda[0] > 0:
        cure = f"pip install '{_extra(machine)}', or install a newer driver"
        return Finding("NVRTC", f"{seen}: the driver, of CUDA {_text(machine.driver.cuda)}, loads no such cubins", cure)
    return Finding("NVRTC", seen)


def _cupy(machine: Machine) -> Finding:
    return _package("CuPy", machine.cupy, machine)


def _cudnn(machine: Machine) -> Finding:
    finding = _package("cuDNN", machine.cudnn, machine)
    if finding.cure is None:
        return finding
    return Finding("cuDNN", finding.seen, f"{finding.cure}; convolutions need it")


def _package(name: str, package: Package | None, machine: Machine) -> Finding:
    if package is None:
        return Finding(name, "not installed", f"pip install '{_extra(machine)}'")
    major = package.cuda_major
    seen = package.version + (f" for CUDA {major}" if major else "")
    if machine.driver and major and major > machine.driver.cuda[0] > 0:
        cure = f"pip uninstall it and pip install '{_extra(machine)}'"
        return Finding(name, f"{seen}, but the driver is of CUDA {_text(machine.driver.cuda)}", cure)
    return Finding(name, seen)


def _too_large(machine: Machine, task: Task, size: str) -> str | None:
    if machine.driver is None or not machine.driver.gpus:
        return None
    gpu = machine.driver.gpus[0]
    nbytes = sum(_ITEM_BYTES * math.prod(array.shape) for array in task.arrays_at(size))
    if _TIMES_THE_INPUTS * nbytes <= gpu.memory_bytes:
        return None
    others = ", ".join(other for other in task.sizes if other != size)
    return (
        f"device cuda: task {task.id} at size {size} takes {_TIMES_THE_INPUTS * nbytes / 2**30:.0f} GiB at least, and"
        f" {gpu.name} has {gpu.memory_bytes / 2**30:.0f} GiB; choose another size ({others}) or a larger GPU"
    )


def _extra(machine: Machine) -> str:
    major = 12 if machine.driver and 0 < machine.driver.cuda[0] < 13 else 13
    return f"cudal1-jax[cuda{major}]"


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
