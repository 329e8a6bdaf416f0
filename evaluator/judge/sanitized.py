"""One run of a program under compute-sanitizer's tools, where they are installed."""

from typing import Any

from evaluator.devices.cuda import sanitizer
from evaluator.judge.cases import inputs_for
from evaluator.judge.seeds import derive
from evaluator.records import Outcome, ProgramFault, Rung
from evaluator.tasks.task import Task


def watched_run(compiled: Any, task: Task, size: str, seed: int) -> list[str]:
    """What the tools said of a plan compiled for a GPU, a line each. Raises `out_of_bounds` for a stray access.

    What the other tools find may be harmless, so it is told and refuses nothing.
    """
    executable = sanitizer.find()
    if executable is None:
        return ["not run under compute-sanitizer, which is not installed"]
    inputs = inputs_for(task, size, "plain", derive(seed, task.id, "sanitizer"))
    said = []
    try:
        for report in sanitizer.reports(executable, compiled, inputs):
            if report.tool == "memcheck" and report.finding is not None:
                raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, report.text)
            said.append(report.text)
    except sanitizer.Unusable as error:
        said.append(f"not watched to the end: {error}")
    return said
