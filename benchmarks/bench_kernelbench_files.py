"""KernelBench's own files as tasks by path, beside this project's tasks of the same ids: values, verdicts, times.

    python benchmarks/bench_kernelbench_files.py FOLDER --count=24 --seed=0

FOLDER holds level1, level2, level3 of KernelBench v0.2. Files are picked at random; constants above 32 are made small
so that the emulator has the time for them. Values are compared in float64 on equal arrays. With --judge the task's
plain program is judged for both.
"""

import argparse
import ast
import dataclasses
import random
import re
import time
from pathlib import Path

import jax
import numpy as np

from evaluator.judge.baseline import plain_text
from evaluator.judge.expected import widened
from evaluator.judge.ladder import Judge
from evaluator.nn import jax_nn, run
from evaluator.nn.torch_module import TorchModule
from evaluator.tasks import catalog, torch_file
from evaluator.tasks.arrays import draw
from evaluator.tasks.user import TaskFileError

_KEPT = re.compile(r"kernel|stride|padding|dilation|group|num_|channels|classes|pool|heads|layers|growth")
_SMALL = {1: 48, 2: 1024}  # by level; of models the batch and the images


def small(text: str, level: int) -> dict[str, int]:
    """Constants of a file made small."""
    scope: dict = {}
    exec(compile(text, "<file>", "exec"), scope)
    found = {}
    for name in torch_file.assigned(ast.parse(text)):
        value = scope.get(name)
        if "batch" in name and isinstance(value, int):
            found[name] = min(value, 4)
        elif level == 3 and name in ("height", "width"):
            found[name] = 64
        elif level == 2 and name in ("height", "width", "depth"):
            found[name] = min(value, 20)
        elif level < 3 and type(value) is int and value > _SMALL[level] and not _KEPT.search(name):
            found[name] = _SMALL[level]
    return found


def compare(path: Path) -> dict:
    """What is found of one file; `error` is the largest difference over the largest value."""
    level, number = int(path.parent.name[-1]), int(path.stem.split("_")[0])
    ours = catalog.get(f"{level}_{number:03d}")
    constants = small(path.read_text(), level)
    try:
        task = torch_file.load(path, constants)
    except TaskFileError as error:
        return {"id": ours.id, "said": str(error).removeprefix(f"{path}: ")}
    arrays = widened(draw(task, "cpu", seed=5))
    theirs = TorchModule(task.source).run(arrays)
    with jax.enable_x64(True):
        found = jax.jit(lambda arrays: run.run(ours.source_at("kb"), jax_nn, arrays))(arrays)
    scale = max(float(np.abs(x).max()) for x in theirs)
    error = max(float(np.abs(np.asarray(a) - b).max()) for a, b in zip(found, theirs, strict=True))
    return {"id": ours.id, "task": task, "error": error / scale if scale else error}


def judge(found: dict) -> str:
    """Outcome and median time of the plain program on the file's task, and of the same on ours at these shapes."""
    task, ours = found["task"], catalog.get(found["id"])
    text = plain_text(ours.id)
    if text is None:
        return "no plain program"
    same = dataclasses.replace(task, source=ours.source_at("kb"), reference="nn", precision=ours.precision)
    said = []
    with Judge(device="cpu") as judging:
        for each in (task, same):
            verdict = judging.check(text, each, "cpu")
            times = verdict.times.get("program") if verdict.times else None
            said.append(f"{verdict.outcome}" + (f" {times.value:.0f} us" if times else ""))
    return "; ".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    files = sorted(options.folder.glob("level[123]/*.py"))
    for path in random.Random(options.seed).sample(files, options.count):
        started_s = time.monotonic()
        found = compare(path)
        values = found.get("said") or f"error {found['error']:.1e}"
        judged = judge(found) if options.judge and "task" in found else ""
        print(f"{found['id']} {path.stem}: {values} {judged} ({time.monotonic() - started_s:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
