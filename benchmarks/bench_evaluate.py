"""What a verdict costs, by rung, and how noisy a program against itself is. Reports, never fails.

    python benchmarks/bench_evaluate.py [--repeats=5] [--tasks=1_012,1_019]

Judges the programs under `kernels/` in quick mode with a warm judge. The first line of each task is cold: it starts
the oracle, the baseline and fills the caches.
"""

import argparse
import statistics
import time

from evaluator.judge import table
from evaluator.judge.baseline import kernels_folder, plain_text
from evaluator.judge.ladder import Judge
from evaluator.judge.text_file import read_program
from evaluator.records import Mode, Rung
from evaluator.tasks import catalog


def noise(judge: Judge, tasks: list[str], repeats: int) -> str:
    """A against A: every ratio should be 1, and its interval hold 1."""
    rows = [("plain against itself", "ratios", "intervals that hold 1")]
    for task_id in tasks:
        text = plain_text(task_id)
        verdicts = [judge.check(text, catalog.get(task_id), plain=text, cases=("plain",)) for _ in range(repeats)]
        ratios = [verdict.speedups["plain"] for verdict in verdicts if "plain" in verdict.speedups]
        holds = sum(ratio.low <= 1.0 <= ratio.high for ratio in ratios)
        rows.append((task_id, " ".join(f"{ratio.value:.3f}" for ratio in ratios), f"{holds} of {len(ratios)}"))
    return table.columns(rows)


def cost(judge: Judge, tasks: list[str], repeats: int) -> str:
    """Wall milliseconds of a verdict and of its rungs; `again` is the median over repeats of the same program."""
    rungs = [rung for rung in Rung if rung is not Rung.EXTRACT]
    rows = [("program", "outcome", "speed-up", "first", "again", *map(str, rungs), "correctness alone")]
    folder = kernels_folder()
    for path in sorted(path for task_id in tasks for path in (folder / task_id).glob("*.py")):
        text, task = read_program(path), catalog.get(path.parent.name)
        walls, verdict = [], None
        for _ in range(1 + repeats):
            began = time.perf_counter()
            verdict = judge.check(text, task)
            walls.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        judge.check(text, task, timing=False, cases=("negated",))
        short_ms = (time.perf_counter() - began) * 1e3
        cells = [f"{verdict.rung_ms.get(rung, 0.0):.0f}" for rung in rungs]
        again = f"{statistics.median(walls[1:]):.0f}"
        speedup = "-" if verdict.speedup is None else f"{verdict.speedup:.2f}"
        name = f"{path.parent.name}/{path.stem}"
        rows.append((name, str(verdict.outcome), speedup, f"{walls[0]:.0f}", again, *cells, f"{short_ms:.0f}"))
    return table.columns(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", help="task ids with commas between; default: all with a plain program")
    options = parser.parse_args()
    folder = kernels_folder()
    if folder is None:
        print("no programs found: install the package with kernels/ beside it")
        return
    tasks = (
        options.tasks.split(",") if options.tasks else sorted(path.parent.name for path in folder.glob("*/plain.py"))
    )
    with Judge(mode=Mode.QUICK) as judge:
        print(noise(judge, tasks, options.repeats), end="\n\n")
        print("wall milliseconds, quick mode, warm judge")
        print(cost(judge, tasks, options.repeats))


if __name__ == "__main__":
    main()
