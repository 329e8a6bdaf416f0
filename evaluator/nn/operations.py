"""What a task's reference does, from its shapes alone: nothing is run, so large sizes cost no more."""

import dataclasses
import functools

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
    try:
        return _count(task.source_at(size), tuple((array.shape, array.dtype) for array in task.arrays_at(size)))
    except Exception as error:  # whatever the text raises is a finding about the task
        raise ValueError(f"the operations of task {task.id} cannot be counted at size {size}: {error}") from error


@functools.lru_cache(maxsize=256)
def _count(source: str, forms: tuple[tuple[tuple[int, ...], str], ...]) -> Count:
    tally = Tally()
    inputs = [Array(shape, dtype, tally) for shape, dtype in forms]
    written = sum(x.nbytes for x in run(source, count_nn, inputs))
    return Count(tally.operations, sum(x.nbytes for x in inputs), written)
