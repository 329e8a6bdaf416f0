"""What it costs to bring a plan to the emulator: compilation, the disk cache, a runner, one run. Reports, never fails.

    python benchmarks/bench_compile.py [--tasks=1_012,1_019]

Judges nothing. Every program under `kernels/` is compiled into an empty cache, found there again, and opened in a
runner of its own. The first compilation of all also makes the precompiled shim, so it has a row for itself.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable

from evaluator.devices import cpu
from evaluator.judge import table
from evaluator.judge.baseline import kernels_folder
from evaluator.judge.text_file import read_program
from evaluator.nn.run import abstract
from evaluator.program.plan import Plan
from evaluator.program.trace import Tracer
from evaluator.records import Limits
from evaluator.tasks import arrays, catalog


def plans(only: set[str]) -> list[tuple[str, str, Plan]]:
    """Task id, name and plan of every program."""
    found = []
    with Tracer() as tracer:
        for path in sorted(kernels_folder().glob("*/*.py")):
            task = catalog.get(path.parent.name)
            if not only or task.id in only:
                plan = tracer.trace(read_program(path), task.arrays_at("cpu"), abstract(task, "cpu"))
                found.append((task.id, path.stem, plan))
    return found


def milliseconds(step: Callable[[], object]) -> tuple[float, float]:
    """Wall time, and CPU time of this process and of the children that it waited for."""
    wall, processor = time.perf_counter(), os.times()
    step()
    after = os.times()
    cpu_s = sum(after[:4]) - sum(processor[:4])
    return 1e3 * (time.perf_counter() - wall), 1e3 * cpu_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="", help="task ids with commas between; default: all with a program")
    options = parser.parse_args()
    chosen = plans(set(filter(None, options.tasks.split(","))))
    limits = Limits()
    steps: dict[str, list[tuple[float, float]]] = {}

    def note(step: str, action: Callable[[], object]) -> None:
        steps.setdefault(step, []).append(milliseconds(action))

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        note("first compilation, with the shim", lambda: cpu.compile(chosen[0][2], limits))
        for task_id, _, plan in chosen[1:]:
            note("compilation", lambda plan=plan: cpu.compile(plan, limits))
            compiled = cpu.compile(plan, limits)
            note("found in the cache", lambda plan=plan: cpu.compile(plan, limits))
            inputs = arrays.draw(catalog.get(task_id), "cpu", 0)
            began = time.perf_counter()
            with cpu.Session(compiled, limits) as session:
                started = time.perf_counter()
                session.run(inputs, order="forward", seed=0, guard="right")
                ended = time.perf_counter()
            steps.setdefault("runner started", []).append((1e3 * (started - began), float("nan")))
            steps.setdefault("guarded run", []).append((1e3 * (ended - started), float("nan")))

    rows = [("step", "programs", "median ms", "most ms", "median CPU ms")]
    for step, costs in steps.items():
        walls, processor = zip(*costs, strict=True)
        cpu_ms = statistics.median(processor)
        shown = "-" if cpu_ms != cpu_ms else f"{cpu_ms:.0f}"  # nan: the runner is not waited for inside the step
        rows.append((step, str(len(costs)), f"{statistics.median(walls):.1f}", f"{max(walls):.1f}", shown))
    print(table.columns(rows))


if __name__ == "__main__":
    main()
