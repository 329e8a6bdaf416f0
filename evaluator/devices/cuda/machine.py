"""What this machine has for the `cuda` device, read without a CUDA context: driver, GPUs, NVRTC, CuPy, cuDNN."""

import ctypes
import dataclasses
import importlib.metadata
import importlib.util
import re

from evaluator import _core
from evaluator.devices.cuda import toolkit
from evaluator.records import ProgramFault

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
# CU_DEVICE_ATTRIBUTE_CLOCK_RATE, MULTIPROCESSOR_COUNT, MEMORY_CLOCK_RATE, GLOBAL_MEMORY_BUS_WIDTH
_CLOCK, _MULTIPROCESSORS, _MEMORY_CLOCK, _MEMORY_BUS = 13, 16, 36, 37
Version = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    architecture: int  # 90 is sm_90
    memory_bytes: int
    # The highest clocks, and what runs at them; 0 where the driver does not tell.
    clock_khz: int = 0
    multiprocessors: int = 0
    memory_clock_khz: int = 0
    memory_bus_bits: int = 0


@dataclasses.dataclass(frozen=True)
class Driver:
    cuda: Version  # newest CUDA release that it knows
    gpus: tuple[Gpu, ...]
    status: int = 0  # of the driver's first call that failed


@dataclasses.dataclass(frozen=True)
class Nvrtc:
    path: str
    cuda: Version
    architectures: tuple[int, ...]  # that it compiles for


@dataclasses.dataclass(frozen=True)
class Package:
    """A Python package, perhaps built for one CUDA major version."""

    version: str
    cuda_major: int | None = None  # None: not told by its name


_UNKNOWN = Package("of unknown version")  # not installed by pip, so that only its import would tell


@dataclasses.dataclass(frozen=True)
class Machine:
    """None stands for what is not there."""

    driver: Driver | None
    nvrtc: Nvrtc | None
    cupy: Package | None
    cudnn: Package | None


def read() -> Machine:
    """What is here. Takes milliseconds; imports none of it."""
    return Machine(driver=driver(), nvrtc=nvrtc(), cupy=_cupy(), cudnn=_cudnn())


def driver() -> Driver | None:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version, count = ctypes.c_int(), ctypes.c_int()
    status = (
        library.cuInit(0)
        or library.cuDriverGetVersion(ctypes.byref(version))
        or library.cuDeviceGetCount(ctypes.byref(count))
    )
    release = version.value // 1000, version.value % 1000 // 10
    gpus = [] if status else [_gpu(library, ordinal) for ordinal in range(count.value)]
    return Driver(release, tuple(gpus), status)


def _gpu(library: ctypes.CDLL, ordinal: int) -> Gpu:
    device, name, total = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    library.cuDeviceGet(ctypes.byref(device), ordinal)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceTotalMem_v2(ctypes.byref(total), device)

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        return 0 if library.cuDeviceGetAttribute(ctypes.byref(value), which, device) else value.value

    return Gpu(
        name=name.value.decode(errors="replace"),
        architecture=10 * attribute(_MAJOR) + attribute(_MINOR),
        memory_bytes=total.value,
        clock_khz=attribute(_CLOCK),
        multiprocessors=attribute(_MULTIPROCESSORS),
        memory_clock_khz=attribute(_MEMORY_CLOCK),
        memory_bus_bits=attribute(_MEMORY_BUS),
    )


def nvrtc() -> Nvrtc | None:
    try:
        path = toolkit.find().nvrtc
    except ProgramFault:
        return None
    library = _core.Nvrtc(path)
    return Nvrtc(path, library.version(), tuple(library.architectures()))


def _cupy() -> Package | None:
    if importlib.util.find_spec("cupy") is None:
        return None
    return _installed(r"cupy(-cuda(?P<major>\d+)x?)?") or _UNKNOWN


def _cudnn() -> Package | None:
    """The library behind the frontend, which a toolkit may have brought as well."""
    if importlib.util.find_spec("cudnn") is None:
        return None
    return _installed(r"nvidia-cudnn-cu(?P<major>\d+)") or _UNKNOWN


def _installed(name: str) -> Package | None:
    pattern = re.compile(name)
    for distribution in importlib.metadata.distributions():
        found = pattern.fullmatch((distribution.metadata["Name"] or "").lower())
        if found:
            major = found.groupdict().get("major")
            return Package(distribution.version, int(major) if major else None)
    return None
