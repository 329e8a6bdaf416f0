"""The buffers of a plan on the device, with guards around them. Needs CuPy."""

from collections.abc import Callable, Iterator, Sequence

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda import comparison, layout
from evaluator.devices.poison import poison
from evaluator.program.plan import Plan, View
from evaluator.records import Outcome, ProgramFault, Rung

# Bytes that lie beside the buffers, another one in each judged run. As floats they are large, large and negative, and
# NaN, as integers of either sign: a program that makes use of them does not overlook all three.
CANARIES = (0x7B, 0xFB, 0xFF)


class GuardedBuffers:
    """The buffers of a plan between unmapped pages, with canaries in what is left of their own pages."""

    def __init__(self, device: _core.CudaDevice, plan: Plan, guard: str, canary: int, make_room: Callable[[], None]):
        self._device, self.plan, self._canary = device, plan, canary
        self._guarded = [_guarded(device, buffer.nbytes, guard == "right", make_room) for buffer in plan.buffers]
        self.addresses = [guarded.address for guarded in self._guarded]
        for _, _, slack in self.slacks():
            device.fill(slack.data.ptr, bytes([canary]), slack.nbytes)

    def array(self, number: int) -> cp.ndarray:
        buffer = self.plan.buffers[number]
        dtype = layout.numpy_dtype(buffer.dtype)
        return layout.array(self.addresses[number], buffer.shape, dtype, self._guarded[number])

    def bits(self, number: int) -> cp.ndarray:
        buffer = self.plan.buffers[number]
        return layout.bits(self.addresses[number], buffer.size, buffer.dtype, self._guarded[number])

    def view(self, view: View) -> cp.ndarray:
        """The elements of a view, not a copy; keeps the memory of its buffer alone."""
        flat = self.array(view.buffer).reshape(-1)
        return flat[view.offset : view.offset + view.size].reshape(view.shape)

    def prepare(self, inputs: Sequence[cp.ndarray], seed: int) -> None:
        """Everything as a program should find it."""
        self.fill_inputs(inputs)
        self.spread_poison(seed)

    def fill_inputs(self, inputs: Sequence[cp.ndarray]) -> None:
        for number, given in enumerate(inputs):
            self.array(number)[...] = given

    def spread_poison(self, seed: int) -> None:
        for number, buffer in enumerate(self.plan.buffers):
            if buffer.role != "input":
                self._device.fill(self.addresses[number], poison(buffer.dtype, seed)[0].tobytes(), buffer.size)

    def check_canaries(self, rung: Rung) -> None:
        """Raises ProgramFault `out_of_bounds` where a write went beside a buffer but not as far as its guard."""
        for name, place, slack in self.slacks():
            if comparison.count_equal(slack, np.full(1, self._canary, np.uint8)) != slack.nbytes:
                message = f"a write went {place} buffer {name!r}, seen after the run"
                raise ProgramFault(Outcome.OUT_OF_BOUNDS, rung, message)

    def count_strayed(self, strayed: cp.ndarray) -> None:
        """Queues the counting of bytes beside the buffers that are no canaries any more, added to `strayed` [1]."""
        for _, _, slack in self.slacks():
            comparison.count_changed(slack, self._canary, strayed)

    def poisoned(self, view: View, seed: int) -> int:
        """Elements of an output that no step wrote; none of an input that is returned."""
        if self.is_input(view):
            return 0
        bits = self.bits(view.buffer)[view.offset : view.offset + view.size]
        return comparison.count_equal(bits, poison(self.plan.dtype(view), seed))

    def is_input(self, view: View) -> bool:
        return self.plan.buffers[view.buffer].role == "input"

    def slacks(self) -> Iterator[tuple[str, str, cp.ndarray]]:
        """(buffer's name, "before" or "behind" it, the bytes there)."""
        for guarded, buffer in zip(self._guarded, self.plan.buffers, strict=True):
            for place, (address, nbytes) in (("before", guarded.before), ("behind", guarded.behind)):
                yield buffer.name, place, layout.bits(address, nbytes, "uint8", guarded)


def _guarded(device: _core.CudaDevice, nbytes: int, right: bool, make_room: Callable[[], None]) -> _core.GuardedBuffer:
    """Memory from the driver; what is only kept for later is given up where the driver has none left."""
    try:
        return _core.GuardedBuffer(device, nbytes, right)
    except _core.CudaError:
        make_room()
        return _core.GuardedBuffer(device, nbytes, right)
