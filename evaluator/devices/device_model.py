"""Which model of device this process judges on: figures are compared within one model only."""

import functools
import platform
from pathlib import Path

from evaluator.devices.cuda import machine

_CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def name(device: str) -> str:
    """Model of the `cpu` or of the first GPU that CUDA_VISIBLE_DEVICES shows, such as "NVIDIA H200".

    "" where the machine does not tell. No CUDA context is made.
    """
    if device == "cuda":
        driver = machine.driver()
        return driver.gpus[0].name if driver is not None and driver.gpus else ""
    return cpu_model(_CPUINFO.read_text(encoding="utf-8", errors="replace") if _CPUINFO.is_file() else "")


def cpu_model(cpuinfo: str) -> str:
    """The processor that Linux names in the text of /proc/cpuinfo, else what Python knows of it."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip() not in ("", "unknown"):
            return value.strip()
    return platform.processor() or platform.machine()
