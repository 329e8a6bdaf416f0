"""What a task's reference does, from its shapes alone: nothing is run, so large sizes cost no more."""

import dataclasses

from evaluator.nn import count_nn
from evaluator.nn.count_nn.array import Array, Tally
from evaluator.nn.run import Task, run


@dataclasses.dataclass(frozen=True)
class Count:
    """One run of a reference."""

    operations: int  # `evaluator.nn.count_nn` says what counts as one
    input_bytes: int  # parameters among them
    output_bytes: int


def count(task: Task, size: str) -> Count:
    """What the reference does at a size.

    ValueError, naming the task, for a reference that asks more of its arrays than shapes and dtypes.
    """
    tally = Tally()
    try:
        inputs = [Array(array.shape, array.dtype, tally) for array in task.arrays_at(size)]
        written = sum(x.nbytes for x in run(task.source_at(size), count_nn, inputs))
    except Exception as error:  # whatever the text raises is a finding about the task
        raise ValueError(f"the operations of task {task.id} cannot be counted at size {size}: {error}") from error
    return Count(tally.operations, sum(x.nbytes for x in inputs), written)
