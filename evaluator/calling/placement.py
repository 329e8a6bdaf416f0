"""Where a plan's buffers lie when its caller brings the arrays: in an input, in a result, or in scratch memory."""

import dataclasses

from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.plan import Plan, View

ALIGNMENT_BYTES = 256  # as the driver and the allocators of XLA and CuPy align

Place = tuple[int, int]  # number of the caller's buffer, offset in bytes


@dataclasses.dataclass(frozen=True)
class Placement:
    """The caller's buffers are the inputs, then the outputs, then scratch memory where `scratch_bytes` is not 0."""

    buffers: tuple[Place, ...]  # of every buffer of the plan
    copies: tuple[tuple[View, Place], ...]  # outputs that are copied from there to here behind the last step
    array_bytes: tuple[int, ...]  # of every input and output
    scratch_bytes: int

    def place(self, plan: Plan, view: View) -> Place:
        """Where the first element of a view lies."""
        number, offset = self.buffers[view.buffer]
        return number, offset + view.offset * ITEM_BYTES[plan.dtype(view)]


def place(plan: Plan) -> Placement:
    """A temporary that is returned whole lies in its result; other outputs are copied there at the end."""
    first_result = len(plan.inputs)
    results: dict[int, int] = {}  # temporary -> the caller's buffer
    copies = []
    for number, view in enumerate(plan.outputs, start=first_result):
        buffer = plan.buffers[view.buffer]
        if buffer.role == "temporary" and view.size == buffer.size and view.buffer not in results:
            results[view.buffer] = number
        else:
            copies.append((view, (number, 0)))
    scratch_bytes = 0
    places: list[Place] = []
    for number, buffer in enumerate(plan.buffers):
        if buffer.role == "input":
            places.append((number, 0))
        elif number in results:
            places.append((results[number], 0))
        elif buffer.nbytes == 0:
            places.append((first_result, 0))  # anywhere: nobody reads or writes it
        else:
            places.append((first_result + len(plan.outputs), scratch_bytes))
            scratch_bytes += -(-buffer.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return Placement(
        buffers=tuple(places),
        copies=tuple(copies),
        array_bytes=(*(buffer.nbytes for buffer in plan.inputs), *(_nbytes(plan, view) for view in plan.outputs)),
        scratch_bytes=scratch_bytes,
    )


def _nbytes(plan: Plan, view: View) -> int:
    return view.size * ITEM_BYTES[plan.dtype(view)]
