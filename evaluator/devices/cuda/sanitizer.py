"""compute-sanitizer over one run of a plan, where the CUDA toolkit that brings it is installed. Needs no CuPy here."""

import dataclasses
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from evaluator.devices.cuda.compiled_plan import CompiledPlan

TOOLS = ("memcheck", "racecheck", "initcheck")
DEADLINE_S = 180.0  # a tool slows a program a hundredfold, and loads for seconds
_FOUND = 86  # the exit code that the tool is asked for where it found something
_NAME = "compute-sanitizer"
_LINE = re.compile(r"^=+ (?P<text>(?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)\S.*)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Report:
    """What one tool said of one run."""

    tool: str
    finding: str | None  # the first thing that it found; None: nothing

    @property
    def text(self) -> str:
        return f"{_NAME} {self.tool}: {self.finding or 'nothing found'}"


class Unusable(RuntimeError):
    """The tool did not run to its end: says nothing about the program."""


def find() -> str | None:
    """Path of compute-sanitizer: on $PATH, in $CUDA_HOME, $CUDA_PATH or /usr/local/cuda; None where there is none."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [str(Path(root, "bin", _NAME)) for root in roots if root]
    return next(filter(None, map(shutil.which, (_NAME, *places))), None)


def reports(
    executable: str, compiled: CompiledPlan, inputs: Sequence[np.ndarray], deadline_s: float = DEADLINE_S
) -> Iterator[Report]:
    """One report a tool, lazily, each from a process of its own. Raises Unusable."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plan.pickle")
        file.write_bytes(pickle.dumps((compiled, [np.asarray(x, order="C") for x in inputs])))
        for tool in TOOLS:
            yield Report(tool, _finding(executable, tool, file, deadline_s))


def _finding(executable: str, tool: str, file: Path, deadline_s: float) -> str | None:
    command = [executable, "--tool", tool, "--error-exitcode", str(_FOUND), "--print-limit", "1"]
    command += [sys.executable, "-m", "evaluator.devices.cuda.sanitized_run", str(file)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=deadline_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"{_NAME} {tool}: {error}") from error
    if ended.returncode == 0:
        return None
    found = _LINE.search(ended.stdout)
    if ended.returncode != _FOUND or found is None:
        last = (ended.stderr.strip() or ended.stdout.strip()).rpartition("\n")[2]
        raise Unusable(f"{_NAME} {tool}: exit code {ended.returncode}: {last}")
    return found["text"].strip()
