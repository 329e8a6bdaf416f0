"""Recording what a call queues on the device's stream."""

from collections.abc import Callable
from typing import TypeVar

from evaluator import _core

Result = TypeVar("Result")


def record(device: _core.CudaDevice, call: Callable[[], Result]) -> tuple[_core.CudaGraph, Result]:
    """The graph of everything that `call` queues, and what it returns. Its error, if any, ends the recording."""
    device.begin_capture()
    try:
        result = call()
    except BaseException:
        device.abort_capture()
        raise
    return _core.CudaGraph(device), result
