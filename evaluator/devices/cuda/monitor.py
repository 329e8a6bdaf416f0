"""What NVML says of a GPU while it is timed: clocks that are held back, other processes on it. Does not need CuPy."""

import ctypes
import dataclasses
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_SUCCESS, _INSUFFICIENT_SIZE = 0, 7
_SM_CLOCK, _GPU_SENSOR = 1, 0

# nvmlClocksEventReason*: what holds the clocks below what the device would choose by itself.
_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown by software",
    0x40: "thermal slowdown by hardware",
    0x80: "power brake",
}


@dataclasses.dataclass(frozen=True)
class Reading:
    """None where the driver does not say."""

    held_back: tuple[str, ...]  # reasons for which clocks are held back at this moment
    processes: int | None  # that have a context on the device; a container may hide those of others
    sm_mhz: int | None
    temperature_c: int | None
    power_w: float | None

    def disturbances(self, expected_processes: int) -> list[str]:
        """What a reader of times taken now should know, a line each."""
        found = [f"the device's clocks were held back while it was timed: {reason}" for reason in self.held_back]
        if self.processes is not None and self.processes > expected_processes:
            others = self.processes - expected_processes
            found.append(f"{others} more processes than expected had a context on the device while it was timed")
        return found


class Monitor:
    """One GPU, by the bus id that CUDA gives. Reading takes about a tenth of a millisecond."""

    def __init__(self, pci_bus_id: str, library: Any = None):
        """`library` stands for NVML (tests). Raises OSError where there is no NVML or it does not know the device."""
        self._nvml = ctypes.CDLL(_LIBRARY) if library is None else library
        self._handle = ctypes.c_void_p()
        self._check("nvmlInit_v2", self._nvml.nvmlInit_v2())
        found = self._nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.encode(), ctypes.byref(self._handle))
        self._check("nvmlDeviceGetHandleByPciBusId_v2", found)

    def read(self) -> Reading:
        """The state at this moment; what one question fails on is None."""
        reasons = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong) or 0
        milliwatts = self._number("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        return Reading(
            held_back=tuple(text for bit, text in _REASONS.items() if reasons & bit),
            processes=self._processes(),
            sm_mhz=self._number("nvmlDeviceGetClockInfo", ctypes.c_uint, _SM_CLOCK),
            temperature_c=self._number("nvmlDeviceGetTemperature", ctypes.c_uint, _GPU_SENSOR),
            power_w=None if milliwatts is None else milliwatts / 1000,
        )

    def _number(self, name: str, kind: Any, *which: int) -> int | None:
        function, answer = getattr(self._nvml, name, None), kind()
        if function is None or function(self._handle, *which, ctypes.byref(answer)) != _SUCCESS:
            return None
        return int(answer.value)

    def _processes(self) -> int | None:
        function, count = getattr(self._nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None), ctypes.c_uint(0)
        if function is None:
            return None
        status = function(self._handle, ctypes.byref(count), None)  # no room, so that it says how much it needs
        return int(count.value) if status in (_SUCCESS, _INSUFFICIENT_SIZE) else None

    def _check(self, name: str, status: int) -> None:
        if status != _SUCCESS:
            raise OSError(f"{name} failed with NVML status {status}")


def monitor(pci_bus_id: str) -> Monitor | None:
    """A monitor of the device, or None on a machine without NVML."""
    try:
        return Monitor(pci_bus_id)
    except OSError:
        return None
