"""What judging on the emulator costs at a size that is meant for a GPU, known before any work."""

from evaluator.judge.table import prefixed
from evaluator.nn import operations
from evaluator.records import Limits
from evaluator.tasks.task import Task

# Median over the verified programs of kernels/; nine of ten lie between 0.5 and 20.
_NS_AN_OPERATION = 2.0
_QUICK_S = 0.5  # a run of which needs no warning; at size `cpu` they take 2 to 50 ms
_RUNS = 100  # that a verdict takes at least, of cases in guarded memory and of timing
_CURE = "without --size it is `cpu`, made for the emulator; --device=cuda judges on a GPU"


def refusal(task: Task, size: str, limits: Limits) -> str | None:
    """Why no program for the task can run there: its inputs and outputs alone exceed the memory of a program."""
    count = _count(task, size)
    if count is None or count.input_bytes + count.output_bytes <= limits.memory_bytes:
        return None
    needed, given = prefixed(count.input_bytes + count.output_bytes, "B"), prefixed(limits.memory_bytes, "B")
    return (
        f"inputs and outputs of task {task.id} at size {size} take {needed}, and on the emulator a program has"
        f" {given}: {_CURE}"
    )


def warning(task: Task, size: str, limits: Limits) -> str | None:
    """How long a verdict may take, where that is far longer than at size `cpu`."""
    count = _count(task, size)
    if count is None:
        return None
    elements = (count.input_bytes + count.output_bytes) / 4
    run_s = 1e-9 * _NS_AN_OPERATION * max(count.operations, elements)
    if run_s < _QUICK_S:
        return None
    outcome = "" if run_s < limits.kernel_s else f", and one of more than {limits.kernel_s:g} s of CPU is a `timeout`"
    return (
        f"task {task.id} at size {size} takes the emulator about {_duration(run_s)} a run; a verdict needs {_RUNS} or"
        f" more{outcome}: {_CURE}"
    )


def _count(task: Task, size: str) -> operations.Count | None:
    if task.reference == "torch":
        return None
    try:
        return operations.count(task, size)
    except ValueError:  # a reference that asks more than shapes, which costs this estimate alone
        return None


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
