"""How many operations a task's reference does, from its shapes alone: nothing is run, so large sizes cost no more."""

from evaluator.nn import count_nn
from evaluator.nn.count_nn.array import Array, Tally
from evaluator.nn.run import Task, compile_forward


def count(task: Task, size: str) -> int:
    """Operations of the reference at a size; `evaluator.nn.count_nn` says what counts as one.

    ValueError, naming the task, for a reference that needs more of its arrays than shapes.
    """
    tally = Tally()
    forward = compile_forward(task.source_at(size))
    try:
        forward(count_nn, *(Array(array.shape, tally) for array in task.arrays_at(size)))
    except Exception as error:  # whatever the text raises is a finding about the task
        raise ValueError(f"the operations of task {task.id} cannot be counted at size {size}: {error}") from error
    return tally.operations
