"""The `graph` baseline: the reference in `cupy_nn`, recorded once as a CUDA graph. Needs CuPy and a GPU."""

from collections.abc import Sequence
from typing import Any

import cupy as cp

from evaluator.baselines.runner import Runner, event_us
from evaluator.devices.cuda.recording import record
from evaluator.nn import cupy_nn
from evaluator.nn.run import run

_OURS_S = 300.0


def on_gpu(bench: Any, source: str, inputs: Sequence[cp.ndarray]) -> Runner:
    """On the stream of `bench`, a `judge.cuda_workbench.CudaWorkbench`, timed as the judge's paired `graph` is."""
    recorded = _Recorded(bench, source, inputs)
    return Runner(outputs=recorded.outputs, time_us=lambda: event_us(bench, recorded.graph.launch), clock="events")


class _Recorded:
    """A graph with all the memory that it reads and writes."""

    def __init__(self, bench: Any, source: str, inputs: Sequence[cp.ndarray]):
        self._bench, self._inputs = bench, inputs
        self._pool = cp.cuda.MemoryPool()  # nothing else may get what the recording took, not even between its steps
        with cp.cuda.using_allocator(self._pool.malloc):
            self._call(source)  # libraries choose their algorithms outside the recording
            bench.device.wait(_OURS_S)
            self.graph, self._outputs = record(bench.device, lambda: self._call(source))

    def outputs(self) -> Sequence[cp.ndarray]:
        self.graph.launch()
        self._bench.device.wait(_OURS_S)
        return self._outputs

    def _call(self, source: str) -> tuple[cp.ndarray, ...]:
        return run(source, cupy_nn, self._inputs)
