"""What a GPU can do at most, by its own clocks: bytes of memory traffic and operations a second."""

import dataclasses
import functools

from evaluator import _core
from evaluator.devices.cuda import machine
from evaluator.devices.cuda.machine import Gpu

# Float32 units of one multiprocessor, each of which multiplies and adds in one clock: CUDA C++ Programming Guide,
# "Arithmetic Instructions", by compute capability.
_UNITS = {70: 64, 72: 64, 75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128, 100: 128, 103: 128, 120: 128, 121: 128}
# Dense TF32 operations of one multiprocessor in one clock, where all products of a capability have the same: A100
# (156 TFLOP/s), H100 and H200 (495 at 1,830 MHz), B200 (1,100).
_TF32 = {80: 1024, 90: 2048, 100: 4096}


@dataclasses.dataclass(frozen=True)
class Peaks:
    """None: the driver or this table does not tell."""

    bytes_per_s: float | None
    flop_per_s: float | None


@functools.cache
def of_this_machine(precision: str) -> Peaks | None:
    """Peaks of the first GPU that CUDA_VISIBLE_DEVICES shows, at a precision class. No CUDA context is made."""
    driver = machine.driver()
    return peaks(driver.gpus[0], precision) if driver is not None and driver.gpus else None


def peaks(gpu: Gpu, precision: str) -> Peaks:
    """Peaks at the highest clocks. fp32 is what units for single numbers do; tf32 what tensor cores do."""
    per_clock = _TF32.get(gpu.architecture, 0) if precision == "tf32" else 2 * _UNITS.get(gpu.architecture, 0)
    return Peaks(
        bytes_per_s=bytes_per_s(gpu),
        flop_per_s=1e3 * gpu.clock_khz * gpu.multiprocessors * per_clock or None,
    )


def bytes_per_s(gpu: Gpu | _core.CudaDevice) -> float | None:
    """Peak of the memory, which transfers at both edges of its clock."""
    return 2 * 1e3 * gpu.memory_clock_khz * gpu.memory_bus_bits / 8 or None
