"""Where a plan's buffers lie in the memory that evaluator and runner share, and what fills the bytes between them."""

import dataclasses
import mmap

import ml_dtypes
import numpy as np

from evaluator.program.dtypes import FLOAT_DTYPES
from evaluator.program.plan import Plan, View

CANARY = 0xA5
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


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def poison(dtype: str, seed: int) -> np.ndarray:
    """One element that no honest computation leaves behind: a signalling NaN, an odd integer, an impossible bool.

    Arithmetic on the NaN makes it quiet, so an element that still holds it was never written. Integers have no such
    value: two runs with different poison tell an unwritten one from a coincidence.
    """
    generator = np.random.Generator(np.random.Philox(key=np.array([seed & (2**64 - 1), 0x505], np.uint64)))
    width = numpy_dtype(dtype).itemsize
    word = int(generator.integers(1, 2**63))
    if dtype in FLOAT_DTYPES:
        mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype]
        exponent = (1 << (8 * width - 1 - mantissa)) - 1
        payload = word % ((1 << (mantissa - 1)) - 1) + 1  # not 0, quiet bit clear
        word = exponent << mantissa | payload
    elif dtype == "bool":
        word = 0x80 | word % 0x7F + 1
    word %= 1 << (8 * width)
    return np.frombuffer(word.to_bytes(width, "little"), dtype=f"u{width}")


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
