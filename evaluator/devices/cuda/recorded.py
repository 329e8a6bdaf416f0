"""A call recorded as a CUDA graph, with all the memory that it reads and writes. Needs CuPy."""

from collections.abc import Callable
from typing import Any

import cupy as cp

from evaluator import _core
from evaluator.devices.cuda.recording import record


class Recorded:
    """`graph` replays `call`, whose results are `outputs`."""

    def __init__(self, device: _core.CudaDevice, call: Callable[[], Any], patience_s: float):
        """Calls it twice, once outside the recording, where libraries choose their algorithms."""
        self._pool = cp.cuda.MemoryPool()  # nothing else may get what the recording took, not even between its steps
        with cp.cuda.using_allocator(self._pool.malloc):
            call()
            device.wait(patience_s)
            self.graph, self.outputs = record(device, call)
