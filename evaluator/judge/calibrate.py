"""How far honest programs are from the oracle, by family: the figures that `bounds.N_EPS` rests on.

    python -m evaluator.judge.calibrate kernels/ [--seeds=3]

prints for each family the largest error of its programs over all cases, in spacings of float32, beyond what a multiple
of the reference's own error already allows.
"""

import argparse
import collections
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from evaluator.devices import cpu
from evaluator.judge import table
from evaluator.judge.bounds import EQUAL, N_EPS, N_EPS_DEFAULT, SPACING, factor_on, measure
from evaluator.judge.cases import cases_of
from evaluator.judge.expected import Expected
from evaluator.judge.oracle import Oracle
from evaluator.judge.seeds import derive
from evaluator.program.screen import screen
from evaluator.program.trace import trace
from evaluator.records import Limits
from evaluator.tasks import catalog
from evaluator.tasks.task import Task


def spacings(outputs: Sequence[np.ndarray], expected: Expected, task: Task) -> float:
    """Largest error of a run in float32 spacings, 0 where a multiple of the reference's own error covers it."""
    worst = 0.0
    for finding, own in zip(measure(outputs, expected, task.family, "fp32"), expected.accuracies, strict=True):
        if finding.bound == EQUAL:
            continue  # equality is due, nothing to calibrate
        seen = finding.errors
        pairs = ((seen.norm_error, own.norm_error), (seen.element_error, own.element_error))
        beyond = [error for error, allowed in pairs if error > factor_on(own) * allowed]
        worst = max(worst, *beyond, 0.0)
    return worst / SPACING["fp32"]


def worst_case(path: Path, task: Task, oracle: Oracle, seeds: int) -> tuple[float, str]:
    """Largest spacings of one program over all its cases, and the case."""
    text, limits = path.read_text(encoding="utf-8"), Limits()
    screen(text, limits)
    inputs = [array for array in task.arrays_at("cpu") if not array.parameter]
    parameters = [array for array in task.arrays_at("cpu") if array.parameter]
    plan = trace(text, inputs, oracle.outputs(task, "cpu"), limits, parameters)
    worst = (0.0, "-")
    with cpu.Session(cpu.compile(plan, limits), limits) as session:
        for case in cases_of(task):
            for index in range(1 if case != "plain" else seeds):
                expected = oracle.expected(task, "cpu", case, derive(1, task.id, case, index))
                if expected.usable:
                    report = session.run(list(expected.inputs), order="forward", seed=0, guard="right")
                    worst = max(worst, (spacings(report.outputs, expected, task), case))
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evaluator.judge.calibrate", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    worst: dict[str, tuple[float, str, str]] = collections.defaultdict(lambda: (0.0, "-", "-"))
    with Oracle() as oracle:
        for path in tqdm(sorted(options.directory.glob("*/*.py")), unit="program", file=sys.stderr):
            task = catalog.get(path.parent.name)
            spacing, case = worst_case(path, task, oracle, options.seeds)
            worst[task.family] = max(worst[task.family], (spacing, f"{path.parent.name}/{path.name}", case))
    rows = [("family", "spacings", "n_eps", "program", "case")]
    for family, (spacing, program, case) in sorted(worst.items()):
        rows.append((family, f"{spacing:.1f}", f"{N_EPS.get(family, N_EPS_DEFAULT):g}", program, case))
    print(table.columns(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
