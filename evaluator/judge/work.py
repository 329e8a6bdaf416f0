"""What a task asks of its device: the least traffic, the reference's operations, and the device's peaks."""

import logging

from evaluator.devices.cuda import peaks
from evaluator.nn.operations import count
from evaluator.records import Work
from evaluator.tasks.task import Task

logger = logging.getLogger(__name__)


def work_of(task: Task, size: str, device: str) -> Work | None:
    """The work of `task` at `size`; None, and a warning, for a reference that asks more than shapes of its arrays.

    None for a reference in PyTorch too, whose operations nobody counts. It rejects no program, so a reference that
    cannot be counted costs the figure alone.
    """
    if task.reference == "torch":
        return None
    try:
        found = count(task, size)
    except ValueError as error:
        logger.warning("no bandwidth and FLOP/s: %s", error)
        return None
    # The outputs of a degenerate task depend on no input.
    moved_bytes = found.output_bytes + (0 if task.degenerate_at(size) else found.input_bytes)
    most = peaks.of_this_machine(task.precision) if device == "cuda" else None
    if most is None:
        return Work(moved_bytes, found.operations)
    return Work(moved_bytes, found.operations, most.bytes_per_s, most.flop_per_s)
