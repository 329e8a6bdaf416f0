"""`cupy_nn` beside PyTorch eager, task by task: values and times. Needs a GPU, CuPy and PyTorch.

    python benchmarks/bench_reference.py --out=kb.jsonl      # every task at size kb; goes on where it stopped
    python benchmarks/bench_reference.py --size=kb_v0 --only=1_019,1_023 --seed=5
    python benchmarks/bench_reference.py --table=kb.jsonl    # as docs/baselines.md shows it

A record is a task: eager times of `cupy_nn` and of the same text in PyTorch, called in turn (CUDA events; a large fill,
queued before each call, empties the L2 cache and hides what the host takes), their ratio with its 99 % interval,
`cupy_nn` as a CUDA graph, and the relative error in norm of both against `cupy_nn` in float64. What fails is recorded
too; `--retry` tries it again. `xla` and `torch.compile` are measured by `python -m evaluator baselines`.
"""

import argparse
import datetime
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluator.judge.timing import BUCKETS, Schedule, time_pairs
from evaluator.nn import run
from evaluator.tasks import catalog
from evaluator.tasks.task import Task

FLUSH_BYTES = 1 << 30
CHUNK = 1 << 26  # elements compared at a time, in float64
SCHEDULE = Schedule(width=0.005, budget_s=0.6, min_pairs=14, min_sample_us=0.0)
GRAPH_CALLS = 12
SLOW = 1.15  # a ratio above this is named

Record = dict[str, Any]


class Called:
    """A call between CUDA events, each after a fill that empties the L2 cache."""

    def __init__(self, call: Callable[[], object], flush: Any):
        import torch

        self._call, self._flush, self._torch = call, flush, torch
        call()

    def time(self, replays: int) -> float:
        """Microseconds of device time per call."""
        total_ms = 0.0
        for _ in range(replays):
            start, stop = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._flush.fill_(1)
            start.record()
            self._call()
            stop.record()
            stop.synchronize()
            total_ms += start.elapsed_time(stop)
        return 1e3 * total_ms / replays


def measure(task: Task, size: str, seed: int) -> Record:
    """Times and errors of one task; what fails leaves a note in their place."""
    import cupy as cp
    import torch

    from evaluator.devices.cuda.draws import CupySource
    from evaluator.nn import cupy_nn, torch_nn
    from evaluator.tasks.arrays import draw

    source, notes = task.source_at(size), []
    arrays = draw(task, size, seed, "plain", CupySource())
    tensors = [torch.from_dlpack(array) for array in arrays]  # the same memory
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    found: Record = {}

    def attempt(what: str, action: Callable[[], Record]) -> None:
        try:
            found.update(action())
        except Exception as error:  # a benchmark reports and goes on
            notes.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        cp.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()

    def ours() -> object:
        return run.run(source, cupy_nn, arrays)

    def theirs() -> object:
        return run.run(source, torch_nn, tensors)

    with torch.no_grad():
        attempt("eager", lambda: pairs(Called(theirs, flush), Called(ours, flush), seed))
        attempt("graph", lambda: {"graph_us": graph_us(ours, flush)})
        attempt("values", lambda: errors(source, arrays, ours, theirs))
    return found | {"notes": notes}


def pairs(theirs: Called, ours: Called, seed: int) -> Record:
    taken = time_pairs([(ours, theirs)] * BUCKETS, SCHEDULE, seed)
    ratio = taken.speedup
    return {
        "cupy_us": taken.reference.value,
        "torch_us": taken.program.value,
        "ratio": {"value": ratio.value, "low": ratio.low, "high": ratio.high},
    }


def graph_us(call: Callable[[], object], flush: Any) -> float:
    """Median time of a replay of the call recorded as a CUDA graph."""
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(2):  # compiles, and fills this stream's memory pool
            call()
        stream.synchronize()
        stream.begin_capture()
        try:
            outputs = call()
        finally:
            graph = stream.end_capture()
    replay = Called(lambda: graph.launch(cp.cuda.Stream.null), flush)
    median = statistics.median(replay.time(1) for _ in range(GRAPH_CALLS))
    del outputs
    return median


def errors(source: str, arrays: Sequence[Any], ours: Callable, theirs: Callable) -> Record:
    """Largest relative error in norm over the outputs, of `cupy_nn` and of PyTorch, against float64."""
    import cupy as cp

    from evaluator.nn import cupy_nn

    seen, expected = ours(), [cp.from_dlpack(each) for each in theirs()]
    wide = [array.astype(cp.float64) if array.dtype == cp.float32 else array for array in arrays]
    exact = run.run(source, cupy_nn, wide)
    del wide
    return {
        "cupy_error": max(distance(one, other) for one, other in zip(seen, exact, strict=True)),
        "torch_error": max(distance(one, other) for one, other in zip(expected, exact, strict=True)),
    }


def distance(seen: Any, exact: Any) -> float:
    """Relative distance in norm, of elements where both are finite; ValueError where shapes differ."""
    import cupy as cp

    if seen.shape != exact.shape:
        raise ValueError(f"shape {seen.shape}, expected {exact.shape}")
    seen, exact = cp.ascontiguousarray(seen).reshape(-1), cp.ascontiguousarray(exact).reshape(-1)
    squares = norms = 0.0
    for start in range(0, exact.size, CHUNK):
        expected = exact[start : start + CHUNK].astype(cp.float64)
        squares += float(cp.sum((seen[start : start + CHUNK].astype(cp.float64) - expected) ** 2))
        norms += float(cp.sum(expected**2))
    return (squares / norms) ** 0.5 if norms else squares**0.5


def stored(path: Path) -> Iterator[Record]:
    """Records of a file, but a last line that was cut off."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                print(f"left out of {path}: a line that is no record: {line[:60]!r}")


def table(records: Sequence[Record]) -> str:
    """The records as a table in Markdown, and what they come to."""
    head = ["task", "cupy_nn ms", "PyTorch ms", "ratio", "99 % interval", "as a graph ms", "error", "PyTorch's", "note"]
    rows = [head, ["---"] * len(head), *map(cells, records)]
    ratios = [record["ratio"]["value"] for record in records if "ratio" in record]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if ratios:
        within = sum(ratio <= SLOW for ratio in ratios)
        share = f"{within} of {len(ratios)} within {SLOW}, worst {max(ratios):.3f}"
        lines += ["", f"Median ratio {statistics.median(ratios):.3f}; {share}."]
    return "\n".join(lines)


def cells(record: Record) -> list[str]:
    ratio = record.get("ratio")

    def shown(name: str, form: Callable[[float], str]) -> str:
        return form(record[name]) if name in record else "-"

    def milliseconds(us: float) -> str:
        return f"{us / 1e3:.3f}"

    return [
        f"{record['task']} {catalog.get(record['task']).name.replace('_', ' ')}",
        *(shown(name, milliseconds) for name in ("cupy_us", "torch_us")),
        f"{ratio['value']:.3f}" if ratio else "-",
        f"{ratio['low']:.3f} to {ratio['high']:.3f}" if ratio else "-",
        shown("graph_us", milliseconds),
        *(shown(name, lambda error: f"{error:.1e}") for name in ("cupy_error", "torch_error")),
        "; ".join([*(["slow"] if ratio and ratio["value"] > SLOW else []), *record["notes"]]),
    ]


def about(size: str, seed: int) -> Record:
    """What the figures of this machine depend on."""
    import cupy as cp
    import torch

    versions = {"cupy": cp.__version__, "torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version())}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"size": size, "seed": seed, "device": torch.cuda.get_device_name(), "versions": versions, "date": date}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="kb", choices=("kb", "kb_v0", "cpu"))
    parser.add_argument("--only", default="", help="ids, separated by commas")
    parser.add_argument("--seed", type=int, default=1, help="of the draws")
    parser.add_argument("--out", type=Path, help="a line of JSON for each task; what it holds is not measured again")
    parser.add_argument("--retry", action="store_true", help="measure again what left a note")
    parser.add_argument("--table", type=Path, help="print the table of a file, and measure nothing")
    options = parser.parse_args()
    if options.table:
        print(table(sorted(stored(options.table), key=lambda record: record["task"])))
        return
    try:
        common = about(options.size, options.seed)
    except (ImportError, RuntimeError, AssertionError) as error:
        print(f"needs a GPU, CuPy and PyTorch: {error}")
        return
    known = {record["task"]: record for record in (stored(options.out) if options.out else ())}
    records = []
    for task_id in options.only.split(",") if options.only else catalog.TASKS:
        record = known.get(task_id)
        if record is None or (options.retry and record["notes"]):
            task = catalog.get(task_id)
            record = {"task": task_id} | common | measure(task, options.size, options.seed)
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            print("  ".join(cells(record)), flush=True)
        records.append(record)
    print(table(records).splitlines()[-1])


if __name__ == "__main__":
    main()
