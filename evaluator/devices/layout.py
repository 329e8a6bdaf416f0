"""Where a plan's buffers lie in the memory that evaluator and runner share, and what fills the bytes between them."""

import dataclasses
import mmap

import numpy as np

from evaluator.devices.poison import numpy_dtype
from evaluator.program.plan import Plan, View

ALIGNMENT_BYTES = 16  # what a pointer's end can lie before its guard page


@dataclasses.dataclass(frozen=True)
class Region:
    """Whole pages that hold one buffer."""

    file_offset: int  # bytes
    region_bytes: int
    nbytes: int  # of the buffer itself

    def start(self, guard: str) -> int:
        """Offset of the buffer's first byte in the shared memory when its guard page is on that side."""
        if guard == "left":
            return self.file_offset
        return self.file_offset + self.region_bytes - -(-self.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def regions(plan: Plan) -> tuple[Region, ...]:
    page = mmap.PAGESIZE
    result, offset = [], 0
    for buffer in plan.buffers:
        size = max(1, -(-buffer.nbytes // page)) * page
        result.append(Region(offset, size, buffer.nbytes))
        offset += size
    return tuple(result)


class SharedBuffers:
    """The evaluator's view of the shared memory."""

    def __init__(self, plan: Plan, memory: mmap.mmap):
        self._plan = plan
        self._regions = regions(plan)
        self._bytes = np.frombuffer(memory, dtype=np.uint8)

    def raw(self, buffer: int, guard: str) -> np.ndarray:
        """The buffer as unsigned integers of its element's width, flat, writable."""
        region = self._regions[buffer]
        start = region.start(guard)
        width = numpy_dtype(self._plan.buffers[buffer].dtype).itemsize
        return self._bytes[start : start + region.nbytes].view(f"u{width}")

    def array(self, view: View, guard: str) -> np.ndarray:
        """The elements of a view, in its dtype and shape; not a copy."""
        dtype = numpy_dtype(self._plan.buffers[view.buffer].dtype)
        return self.raw(view.buffer, guard)[view.offset : view.offset + view.size].view(dtype).reshape(view.shape)

    def slack(self, buffer: int, guard: str) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the buffer's pages before and behind it."""
        region = self._regions[buffer]
        first, start = region.file_offset, region.start(guard)
        end = start + region.nbytes
        return self._bytes[first:start], self._bytes[end : first + region.region_bytes]
