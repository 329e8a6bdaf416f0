"""The programs of kernels/ from their recorded verdicts, as the table that docs/results.md shows.

    python benchmarks/kernels_table.py [--device=cuda] [--all]

One row a task: its fastest program, the plain one beside it. `--all` lists every program. Reads verdicts that
`python -m evaluator verify kernels/ --device=cuda --write` has left; measures nothing.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluator.judge.baseline import PLAIN, kernels_folder
from evaluator.judge.table import span
from evaluator.judge.timing import rounded
from evaluator.judge.verdict_json import from_json
from evaluator.program.identity import sha256
from evaluator.records import Verdict
from evaluator.tasks import catalog

Entry = tuple[Path, Verdict]


def recorded(folder: Path, device: str) -> Iterator[Entry]:
    """Every program that has a verdict of its present text on `device`."""
    for path in sorted(folder.glob("*/*.py")):
        file = path.with_suffix(f".{device}.json")
        if file.is_file():
            verdict = from_json(file.read_text(encoding="utf-8"))
            if verdict.program_sha256 == sha256(path.read_text(encoding="utf-8")):
                yield path, verdict


def rows(entries: Iterable[Entry], every: bool) -> Iterator[list[str]]:
    by_task: dict[str, list[Entry]] = {}
    for path, verdict in entries:
        by_task.setdefault(path.parent.name, []).append((path, verdict))
    for task_id, some in sorted(by_task.items()):
        some.sort(key=lambda entry: -(entry[1].speedup or 0.0))
        plain = next((verdict for path, verdict in some if path.name == PLAIN), None)
        for path, verdict in some if every else some[:1]:
            yield row(task_id, path, verdict, plain)


def row(task_id: str, path: Path, verdict: Verdict, plain: Verdict | None) -> list[str]:
    task = catalog.get(task_id)
    marks = ["degenerate"] * task.degenerate_at(verdict.size) + ["collapses"] * bool(task.collapses)
    lowest = min(verdict.speedups.values(), key=lambda interval: interval.value, default=None)
    return [
        f"{task_id} {task.name[:34]}",
        path.stem,
        str(verdict.outcome),
        "-" if verdict.speedup is None else f"{verdict.speedup:.2f}",
        "-" if lowest is None else span(lowest.low, lowest.high),
        ", ".join(f"{name} {rounded(interval):.2f}" for name, interval in sorted(verdict.speedups.items())),
        "-" if "program" not in verdict.times else f"{verdict.times['program'].value / 1e3:.3f}",
        "-" if plain is None or plain.speedup is None else f"{plain.speedup:.2f}",
        ", ".join(marks),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--all", action="store_true", help="every program, not each task's fastest alone")
    options = parser.parse_args()
    folder = kernels_folder()
    if folder is None:
        raise SystemExit("no kernels/ here: run from a full checkout")
    heads = ["task", "program", "outcome", "speed-up", "99 % interval", "by baseline", "ms", "plain", "remarks"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for cells in rows(recorded(folder, options.device), options.all):
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
