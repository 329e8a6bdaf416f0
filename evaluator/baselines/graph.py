"""The `graph` baseline: the reference in `cupy_nn`, recorded once as a CUDA graph. Needs CuPy and a GPU."""

from collections.abc import Sequence
from typing import Any

import cupy as cp

from evaluator.baselines.runner import Runner, event_us
from evaluator.devices.cuda.recorded import Recorded
from evaluator.nn import cupy_nn
from evaluator.nn.run import run

_OURS_S = 300.0


def on_gpu(bench: Any, source: str, inputs: Sequence[cp.ndarray]) -> Runner:
    """On the stream of `bench`, a `judge.cuda_workbench.CudaWorkbench`, timed as the judge's paired `graph` is."""
    recorded = Recorded(bench.device, lambda: run(source, cupy_nn, inputs), _OURS_S)

    def outputs() -> Sequence[cp.ndarray]:
        recorded.graph.launch()
        bench.device.wait(_OURS_S)
        return recorded.outputs

    return Runner(outputs=outputs, time_us=lambda: event_us(bench, recorded.graph.launch), clock="events")
