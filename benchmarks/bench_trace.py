"""Prints what reading a program costs: extraction, screen, identity and the sandboxed trace, milliseconds each.

    python benchmarks/bench_trace.py [--repeats=20] [FILE ...]

Without files: every program under kernels/. "cold" starts a child for each trace; "warm" finds one waiting, as it does
while another program is compiled or run; "back to back" asks as fast as it can. The last rows are a plan of many steps.
"""

import argparse
import pathlib
import statistics
import time
from collections.abc import Callable

from evaluator.program.extract import extract
from evaluator.program.identity import token_stream
from evaluator.program.screen import screen
from evaluator.program.trace import Tracer, trace
from evaluator.records import Outcome, ProgramFault
from evaluator.tasks import catalog
from evaluator.tasks.task import Array

ROOT = pathlib.Path(__file__).resolve().parents[1]
WARM_PAUSE_S = 0.06  # for the next child to get ready
MANY_STEPS = """import cupy as cp
k = cp.RawKernel('extern "C" __global__ void k(float* a, int i, float c) {{}}', "k")
def forward(a):
    for i in range({steps}):
        k((1,), (32,), (a, i, cp.float32(0.5)))
    return a
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    files = options.files or sorted(ROOT.glob("kernels/*/*.py"))
    programs = [(path.read_text(encoding="utf-8"), _arrays(path)) for path in files]
    print(f"{len(programs)} programs, {options.repeats} rounds; milliseconds\n")
    print(f"{'what':<34}{'median':>9}{'low':>9}{'high':>9}")
    _row("extract", options.repeats, programs, lambda text, arrays: extract(f"```python\n{text}```"))
    _row("screen", options.repeats, programs, lambda text, arrays: screen(text))
    _row("token stream", options.repeats, programs, lambda text, arrays: token_stream(text))
    _row("trace, cold", 1, programs, lambda text, arrays: _ignore_shape(lambda: trace(text, arrays, [])))
    with Tracer() as tracer:

        def traced(text: str, arrays: list[Array]) -> None:
            _ignore_shape(lambda: tracer.trace(text, arrays, []))

        _row("trace, warm", 1, programs, traced, pause_s=WARM_PAUSE_S)
        _row("trace, back to back", max(1, options.repeats // 10), programs, traced)
        for steps in (1_000, 10_000, 65_536):
            program = (MANY_STEPS.format(steps=steps), [Array("a", (64,))])
            _row(f"trace of {steps} launches", 1, [program], traced, pause_s=WARM_PAUSE_S)


def _arrays(path: pathlib.Path) -> list[Array]:
    """Arrays of the task named by the program's folder, at size cpu."""
    return list(catalog.get(path.parent.name).sizes["cpu"])


def _ignore_shape(run: Callable[[], object]) -> None:
    """Runs a trace that expects no outputs: only the comparison at its very end fails."""
    try:
        run()
    except ProgramFault as found:
        if found.fault.outcome is not Outcome.WRONG_SHAPE:
            raise


def _row(
    name: str,
    repeats: int,
    programs: list[tuple[str, list[Array]]],
    run: Callable[[str, list[Array]], object],
    pause_s: float = 0.0,
) -> None:
    times_ms = []
    for _ in range(repeats):
        for text, arrays in programs:
            time.sleep(pause_s)
            start = time.perf_counter()
            run(text, arrays)
            times_ms.append((time.perf_counter() - start) * 1e3)
    print(f"{name:<34}{statistics.median(times_ms):>9.2f}{min(times_ms):>9.2f}{max(times_ms):>9.2f}")


if __name__ == "__main__":
    main()
