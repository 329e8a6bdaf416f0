"""Runs a pickled plan once, for compute-sanitizer to watch: `python -m evaluator.devices.cuda.sanitized_run FILE`.

The file is one that `sanitizer.reports` wrote. Every buffer is an allocation of its own, so that the tool knows its
end, and nothing but the inputs is written beforehand, so that it sees what is read too early. Needs CuPy.
"""

import pickle
import sys
from pathlib import Path

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda.execution import Executable

_DEADLINE_S = 150.0


def main(file: str) -> None:
    compiled, inputs = pickle.loads(Path(file).read_bytes())
    cp.cuda.set_allocator(None)  # no pool, in which a stray access would hit a neighbour
    device = _core.CudaDevice(0)
    cp.cuda.Device(0).use()
    cp.cuda.Stream.from_external(device).use()
    executable = Executable(device, compiled)
    arrays = [cp.empty(max(1, buffer.nbytes), cp.uint8) for buffer in compiled.plan.buffers]
    for array, given in zip(arrays, inputs, strict=False):  # inputs come first
        array[: given.nbytes].set(np.frombuffer(given.tobytes(), np.uint8))
    executable.queue([array.data.ptr for array in arrays])
    device.wait(_DEADLINE_S)


if __name__ == "__main__":
    main(sys.argv[1])
