"""What a call of a verified program costs beside the bare replay of its plan. Reports, never fails.

    python benchmarks/bench_calling.py                              # on a GPU: needs CuPy, and jax with CUDA
    python benchmarks/bench_calling.py --device=cpu                 # the emulator: copies and two processes
    python benchmarks/bench_calling.py --programs=kernels/1_019/plain.py,kernels/1_023/plain.py --size=kb

Microseconds a call: wall time of many calls queued back to back and waited for once; the median of several such runs
~ the spread of their middle half. Small arrays make the host's part show: where the device is busier than the host,
all columns say the same.

    replay  the plan itself: a CUDA graph of it, replayed; on `cpu` a bare call of its confined process
    queue   its steps queued one by one by the C++ that XLA, `load` and all others call
    load    `evaluator.load` on CuPy arrays (NumPy's on `cpu`)
    torch   `evaluator.load` on PyTorch tensors
    jit     a jitted function of the program alone, JAX's dispatch included; compare "jit of add"
    in jit  a call among 32 that feed one another inside one jitted function: what XLA's runtime and the handler cost.
            For programs of one array whose result is like it.
    over    in jit - replay: the overhead within a jitted program
"""

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evaluator.calling.loaded import load
from evaluator.calling.preparation import Preparation
from evaluator.calling.source import Source, find
from evaluator.judge import table
from evaluator.tasks import arrays

PROGRAMS = (
    "kernels/1_019/plain.py",  # one launch
    "kernels/1_023/l2_pipeline.py",
    "kernels/1_047/four_columns.py",  # two launches, one temporary
    "kernels/1_040/split_rows.py",  # three
)
CHAIN = 32
REPEATS = 15
Times = tuple[float, float]  # microseconds: median, spread


def times_of(call: Callable[[], Any], wait: Callable[[Any], None], calls: int, each: int = 1) -> Times:
    """Of one of the `each` things that a call does."""
    for _ in range(3):
        wait(call())
    seen_us = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(calls):
            last = call()
        wait(last)
        seen_us.append(1e6 * (time.perf_counter() - began) / calls / each)
    low, median, high = statistics.quantiles(seen_us, n=4)
    return median, high - low


def queued_calls(preparation: Preparation, inputs: Sequence[np.ndarray], calls: int) -> dict[str, Times]:
    """Columns that need CuPy alone: the graph, and its steps queued one by one."""
    import cupy as cp

    given = [cp.asarray(array) for array in inputs]
    program = preparation.of(tuple((array.shape, array.dtype) for array in given))
    rest = program.core.bytes[len(given) :]
    memory = [*given, *(cp.empty(max(1, nbytes), cp.uint8) for nbytes in rest)]
    addresses = [array.data.ptr for array in memory]
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    program.queue(stream.ptr, addresses)  # loads the modules, which cannot be recorded
    with stream:
        stream.begin_capture()
        program.queue(stream.ptr, addresses)
        graph = stream.end_capture()

    def wait(_: object) -> None:
        stream.synchronize()

    return {
        "replay": times_of(lambda: graph.launch(stream), wait, calls),
        "queue": times_of(lambda: program.queue(stream.ptr, addresses), wait, calls),
    }


def emulated_calls(preparation: Preparation, inputs: Sequence[np.ndarray], calls: int) -> dict[str, Times]:
    program = preparation.of(tuple((array.shape, array.dtype) for array in inputs))
    given = [memoryview(array.reshape(-1).view(np.uint8)) for array in inputs]
    results = [memoryview(bytearray(nbytes)) for nbytes in program.bytes[len(inputs) :]]
    return {"replay": times_of(lambda: program.run(given, results), lambda _: None, calls)}


def loaded_calls(path: str, device: str, inputs: Sequence[np.ndarray], calls: int) -> dict[str, Times]:
    program = load(path, device=device, allow_unverified=True)
    found = {}
    if device == "cpu":
        found["load"] = times_of(lambda: program(*inputs), lambda _: None, calls)
    else:
        import cupy as cp

        given = [cp.asarray(array) for array in inputs]
        found["load"] = times_of(lambda: program(*given), lambda _: cp.cuda.Device().synchronize(), calls)
    try:
        import torch
    except ImportError:
        return found
    if device == "cuda" and not torch.cuda.is_available():
        return found
    tensors = [torch.from_numpy(array).to(device) for array in inputs]
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    return {**found, "torch": times_of(lambda: program(*tensors), lambda _: wait(), calls)}


def jax_calls(path: str, source: Source, inputs: Sequence[np.ndarray], calls: int) -> dict[str, Times]:
    import jax

    from evaluator.calling.jax_function import jax_call

    call = jax_call(path, device=source.device, allow_unverified=True)
    given = [jax.device_put(array, _jax_device(source.device)) for array in inputs]
    jitted = jax.jit(call)
    found = {"jit": times_of(lambda: jitted(*given), jax.block_until_ready, calls)}
    result = jitted(*given)
    if len(given) == 1 and getattr(result, "shape", None) == given[0].shape and result.dtype == given[0].dtype:

        @jax.jit
        def chain(x):
            for _ in range(CHAIN):
                x = call(x)
            return x

        found["in jit"] = times_of(lambda: chain(*given), jax.block_until_ready, max(1, calls // CHAIN), CHAIN)
    return found


def _jax_device(device: str) -> Any:
    import jax

    return jax.devices("gpu" if device == "cuda" else "cpu")[0]


def row(path: str, options: argparse.Namespace) -> tuple[str, ...]:
    source = find(path, device=options.device, allow_unverified=True)
    inputs = arrays.draw(source.task, options.size, 0)
    preparation = Preparation(source)
    bare = emulated_calls if options.device == "cpu" else queued_calls
    found = {
        **bare(preparation, inputs, options.calls),
        **loaded_calls(path, options.device, inputs, options.calls),
        **jax_calls(path, source, inputs, options.calls),
    }
    if "in jit" in found:
        found["over"] = found["in jit"][0] - found["replay"][0], math.hypot(found["in jit"][1], found["replay"][1])
    steps = len(preparation.of(tuple((array.shape, array.dtype) for array in inputs)).plan.steps)
    names = ("replay", "queue", "load", "torch", "jit", "in jit", "over")
    return (path, str(steps), *(_shown(found.get(name)) for name in names))


def _shown(times: Times | None) -> str:
    return "-" if times is None else f"{times[0]:.1f} ~{times[1]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--size", default="cpu", help="of the tasks; `cpu` has the smallest arrays")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="paths with commas between")
    parser.add_argument("--calls", type=int, help="calls of one run; default 1000, on the emulator 10")
    options = parser.parse_args()
    options.calls = options.calls or (1000 if options.device == "cuda" else 10)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # CuPy's arrays need some memory as well
    import jax

    try:
        device = _jax_device(options.device)
    except RuntimeError as error:
        print(f"needs a GPU that JAX can use: {error}")
        return
    add = jax.jit(lambda x: x + 1.0)
    x = jax.device_put(np.zeros(8, np.float32), device)
    adding = _shown(times_of(lambda: add(x), jax.block_until_ready, options.calls))
    print(f"{device.device_kind}, jax {jax.__version__}; microseconds a call; jit of add: {adding}")
    head = ("program", "steps", "replay", "queue", "load", "torch", "jit", "in jit", "over")
    print(table.columns([head, *(row(path, options) for path in options.programs.split(","))]))


if __name__ == "__main__":
    main()
