"""A task as text: what a prompt and the command line show of it."""

from evaluator.tasks.task import Array, Task


def array_text(array: Array) -> str:
    """One array as a line: `x: float32[64, 300]`."""
    return f"{array.argument}: {array.dtype}[{', '.join(map(str, array.shape))}]"


def task_text(task: Task, size: str) -> str:
    """Arrays, one a line in the order of `forward`, then the reference: all that a program must reproduce."""
    lines = [array_text(array) for array in task.arrays_at(size)]
    return "\n".join(lines) + "\n\n" + task.source_at(size).strip() + "\n"
