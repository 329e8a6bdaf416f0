"""A task as text: what a prompt and the command line show of it."""

from evaluator.tasks.task import Array, Task

MOST_ARRAYS = 16  # lines of a text: a deep model has hundreds, whose shapes a program reads off the arrays it is given


def array_text(array: Array) -> str:
    """One array as a line: `x: float32[64, 300]`."""
    return f"{array.argument}: {array.dtype}[{', '.join(map(str, array.shape))}]"


def task_text(task: Task, size: str) -> str:
    """Arrays, one a line in the order of `forward`, then the reference: all that a program must reproduce.

    Of more than `MOST_ARRAYS` the first are shown, and how many follow.
    """
    arrays = task.arrays_at(size)
    lines = [array_text(array) for array in arrays]
    if len(lines) > MOST_ARRAYS:
        lines[MOST_ARRAYS - 1 :] = [f"... and {len(lines) - MOST_ARRAYS + 1} more, in the order of `forward`"]
    return "\n".join(lines) + "\n\n" + task.source_at(size).strip() + "\n"
