"""The `torch` baselines: the reference in `torch_nn`, eager or compiled by `torch.compile` in one of its modes."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evaluator.baselines.kinds import TORCH, TORCH_COMPILE_REDUCE_OVERHEAD
from evaluator.baselines.runner import Array, Runner, event_us, host_us
from evaluator.nn.run import compile_forward

# Would change precision behind the flags that are set here.
_OVERRIDES = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")


def on_host(baseline: str, source: str, precision: str, inputs: Sequence[np.ndarray]) -> Runner:
    """On the CPU, with as many threads as PyTorch takes."""
    torch = _torch(precision)
    call = _call(torch, baseline, source, [torch.from_numpy(x.copy()) for x in inputs])
    return Runner(
        outputs=lambda: [x.numpy() for x in call()],
        time_us=lambda: host_us(call),
        clock="host",
    )


def on_gpu(bench: Any, baseline: str, source: str, precision: str, inputs: Sequence[Array]) -> Runner:
    """On the GPU of `bench`, a `judge.cuda_workbench.CudaWorkbench`, and on its stream; the inputs are shared."""
    import cupy as cp

    torch = _torch(precision)
    stream = torch.cuda.ExternalStream(bench.device.__cuda_stream__()[1])
    torch.cuda.set_stream(stream)
    call = _call(torch, baseline, source, [torch.as_tensor(x, device="cuda") for x in inputs])
    return Runner(
        outputs=lambda: [cp.asarray(x) for x in call()],
        time_us=lambda: event_us(bench, call),
        clock="events",
    )


def _torch(precision: str) -> Any:
    """PyTorch, set to a precision class: by its own default products are float32 and convolutions may be TF32."""
    for name in _OVERRIDES:
        os.environ.pop(name, None)
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.set_grad_enabled(False)
    return torch


def _call(torch: Any, baseline: str, source: str, tensors: Sequence[Any]) -> Callable[[], Sequence[Any]]:
    """Gives the outputs, which a later call may overwrite."""
    from evaluator.nn import torch_nn

    forward = compile_forward(source)

    def eager(*arrays: Any) -> tuple[Any, ...]:
        outputs = forward(torch_nn, *arrays)
        return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)

    if baseline == TORCH:
        return lambda: eager(*tensors)
    if baseline != TORCH_COMPILE_REDUCE_OVERHEAD:
        compiled = torch.compile(eager, dynamic=False)
        return lambda: compiled(*tensors)
    for tensor in tensors:  # else each replay begins with copies of them
        torch._dynamo.mark_static_address(tensor)
    reduced = torch.compile(eager, mode="reduce-overhead", dynamic=False)

    def call() -> Sequence[Any]:
        torch.compiler.cudagraph_mark_step_begin()  # outputs of earlier calls may go
        return reduced(*tensors)

    return call
