"""`cupy_nn` beside PyTorch eager, task by task: values and times. Needs a GPU, CuPy and PyTorch.

    python benchmarks/bench_reference.py [--size=kb|kb_v0|cpu] [--only=1_019,1_023] [--times=h200_pytorch.json]

A row is a task: eager times of `cupy_nn` and of the same text in PyTorch (CUDA events; a large fill, queued before each
call, empties the L2 cache and hides what the host takes), their ratio, `cupy_nn` as a CUDA graph, stored PyTorch times
where a file is given, and the relative error in norm of both against `cupy_nn` in float64.
"""

import argparse
import gc
import json
import pathlib
import statistics
import sys
from collections.abc import Callable, Sequence

try:
    import cupy as cp
    import torch
except ImportError as error:
    print(f"needs a GPU, CuPy and PyTorch: {error}")
    sys.exit()

from evaluator.nn import cupy_nn, run, torch_nn
from evaluator.tasks import catalog
from evaluator.tasks.arrays import parse_init
from evaluator.tasks.task import Array, Task

FLUSH_BYTES = 1 << 30
CHUNK = 1 << 26  # elements compared at a time, in float64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="kb", choices=("kb", "kb_v0", "cpu"))
    parser.add_argument("--only", default="", help="ids, separated by commas")
    parser.add_argument("--times", type=pathlib.Path, help="JSON list of stored PyTorch times")
    parser.add_argument("--calls", type=int, default=12, help="timed calls of each")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU that PyTorch can use: there is none")
        return
    stored = {}
    if options.times:
        stored = {entry["id"]: entry[options.size] for entry in json.loads(options.times.read_text())}
    print(f"{torch.cuda.get_device_name()}, CuPy {cp.__version__}, PyTorch {torch.__version__}, size {options.size}")
    heads = "".join(f"{head:>10}" for head in ("graph", "stored", "s.graph"))
    print(f"{'task':8}{'cupy':>10}{'torch':>10}{'ratio':>7}{heads}  errors cupy, torch")
    ratios = []
    for task_id in options.only.split(",") if options.only else catalog.TASKS:
        ratio = row(catalog.get(task_id), options.size, options.calls, stored.get(task_id, {}))
        ratios += [ratio] if ratio else []
        gc.collect()
        cp.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
    if ratios:
        within = sum(ratio <= 1.15 for ratio in ratios)
        print(f"median {statistics.median(ratios):.3f}, {within} of {len(ratios)} within 1.15, worst {max(ratios):.3f}")


def row(task: Task, size: str, calls: int, stored: dict) -> float | None:
    """Prints one row; the ratio of the eager times, or None where either failed."""
    source = task.source_at(size)
    tensors = [draw(array, seed) for seed, array in enumerate(task.arrays_at(size))]
    arrays = [cp.asarray(tensor) for tensor in tensors]
    notes: list[str] = []
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    with torch.no_grad():
        theirs = attempt("torch", notes, lambda: time_ms(lambda: run.run(source, torch_nn, tensors), calls, flush))
        torch.cuda.empty_cache()
        ours = attempt("cupy", notes, lambda: time_ms(lambda: run.run(source, cupy_nn, arrays), calls, flush))
        graph = attempt("graph", notes, lambda: graph_ms(source, arrays, calls, flush)) if ours else None
        cp.get_default_memory_pool().free_all_blocks()
        errors = attempt("values", notes, lambda: value_errors(source, tensors, arrays)) if ours else None
    ratio = ours / theirs if ours and theirs else None
    texts = [f"{x:10.4f}" if x else f"{'-':>10}" for x in (ours, theirs)]
    texts.append(f"{ratio:7.3f}" if ratio else f"{'-':>7}")
    texts += [f"{x:10.4f}" if x else f"{'-':>10}" for x in (graph, stored.get("eager_ms"), stored.get("graph_ms"))]
    shown = " ".join(f"{error:.1e}" for error in errors) if errors else "-"
    mark = " <-- slow" if ratio and ratio > 1.15 else ""
    trouble = "".join(f" | {note}" for note in notes)
    print(f"{task.id:8}{''.join(texts)}  {shown}  {task.name[:32]}{mark}{trouble}", flush=True)
    return ratio


def attempt(what: str, notes: list[str], action: Callable):
    """What `action` gives; None where it raises, with a note that says what."""
    try:
        return action()
    except Exception as error:  # a benchmark reports and goes on
        cp.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
        notes.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return None


def draw(array: Array, seed: int) -> torch.Tensor:
    """Contents of an array by its distribution, drawn on the device (not the judge's numbers)."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    dtype = getattr(torch, array.dtype)
    product = torch.ones((), device="cuda")
    for term in parse_init(array.init):
        shape = () if term.scalar else array.shape
        first, second = (*term.numbers, 0.0)[:2]
        if term.kind == "integers":
            drawn = torch.randint(int(first), int(second), shape, generator=generator, device="cuda")
        elif term.kind == "constant":
            drawn = torch.full(shape, first, device="cuda")
        elif term.kind == "uniform":
            drawn = torch.rand(shape, generator=generator, device="cuda").mul_(second - first).add_(first)
        else:
            drawn = torch.randn(shape, generator=generator, device="cuda").mul_(second).add_(first)
        product = drawn if term.kind == "integers" else drawn.mul_(product) if drawn.dim() else product * drawn
    return product.expand(array.shape).contiguous().to(dtype)


def time_ms(call: Callable[[], object], calls: int, flush: torch.Tensor) -> float:
    """Median time of a call in milliseconds, after two that are not timed."""
    times = []
    for turn in range(calls + 2):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.fill_(turn)
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return statistics.median(times[2:])


def graph_ms(source: str, arrays: Sequence[cp.ndarray], calls: int, flush: torch.Tensor) -> float:
    """Time of one replay of the reference recorded as a CUDA graph."""
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(2):  # compiles, and fills this stream's memory pool
            run.run(source, cupy_nn, arrays)
        stream.synchronize()
        stream.begin_capture()
        try:
            outputs = run.run(source, cupy_nn, arrays)
        finally:
            graph = stream.end_capture()
    median = time_ms(lambda: graph.launch(cp.cuda.Stream.null), calls, flush)
    del outputs
    return median


def value_errors(source: str, tensors: Sequence[torch.Tensor], arrays: Sequence[cp.ndarray]) -> tuple[float, float]:
    """Largest relative error in norm over the outputs, of `cupy_nn` and of PyTorch, against float64."""
    ours = run.run(source, cupy_nn, arrays)
    theirs = run.run(source, torch_nn, tensors)
    wide = [array.astype(cp.float64) if array.dtype == cp.float32 else array for array in arrays]
    exact = run.run(source, cupy_nn, wide)
    del wide
    errors = [(distance(o, e), distance(cp.asarray(t), e)) for o, t, e in zip(ours, theirs, exact, strict=True)]
    return max(error for error, _ in errors), max(error for _, error in errors)


def distance(seen: cp.ndarray, exact: cp.ndarray) -> float:
    if seen.shape != exact.shape:
        raise ValueError(f"shape {seen.shape}, expected {exact.shape}")
    seen, exact = cp.ascontiguousarray(seen).reshape(-1), cp.ascontiguousarray(exact).reshape(-1)
    squares = norms = 0.0
    for start in range(0, exact.size, CHUNK):
        expected = exact[start : start + CHUNK].astype(cp.float64)
        squares += float(cp.sum((seen[start : start + CHUNK].astype(cp.float64) - expected) ** 2))
        norms += float(cp.sum(expected**2))
    return (squares / norms) ** 0.5 if norms else squares**0.5


if __name__ == "__main__":
    main()
