"""The `xla` baseline: the reference in `jax_nn` under `jax.jit`, timed by the host around the wait for its outputs."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evaluator.baselines.runner import Array, Runner, flushed_host_us, host_us

_PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32"}  # of convolutions; products in `jax_nn` are always float32


def on_host(source: str, precision: str, inputs: Sequence[np.ndarray]) -> Runner:
    """On the CPU, with as many threads as XLA takes."""
    call = _jitted("cpu", source, precision, lambda jax: [jax.numpy.asarray(x) for x in inputs])
    return Runner(
        outputs=lambda: [np.asarray(x) for x in call()],
        time_us=lambda: host_us(call),
        clock="host",
    )


def on_gpu(bench: Any, source: str, precision: str, inputs: Sequence[Array]) -> Runner:
    """On the GPU of `bench`, a `judge.cuda_workbench.CudaWorkbench`; the inputs are shared, not copied."""
    import cupy as cp

    call = _jitted("cuda", source, precision, lambda jax: [jax.dlpack.from_dlpack(x) for x in inputs])
    return Runner(
        outputs=lambda: [cp.from_dlpack(x) for x in call()],
        time_us=lambda: flushed_host_us(bench, call),
        clock="host",
    )


def _jitted(platform: str, source: str, precision: str, place: Callable[[Any], list]) -> Callable[[], Any]:
    """The call that waits for its outputs. To be made once in a process that has not imported JAX."""
    os.environ["JAX_PLATFORMS"] = platform
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ.pop("XLA_FLAGS", None)  # the caller's are no part of this baseline
    import jax

    jax.config.update("jax_enable_x64", True)  # outputs of the task's own dtypes, where they are int64
    jax.config.update("jax_default_matmul_precision", _PRECISIONS[precision])
    from evaluator.nn import jax_nn
    from evaluator.nn.run import run

    jitted = jax.jit(lambda *arrays: run(source, jax_nn, arrays))
    arrays = place(jax)
    return lambda: jax.block_until_ready(jitted(*arrays))
