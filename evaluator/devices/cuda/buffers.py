"""The buffers of a plan on the device, for a judged run or for timed replays. Needs CuPy."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda import comparison, layout
from evaluator.devices.cuda.execution import Executable
from evaluator.devices.cuda.recording import record
from evaluator.devices.poison import poison
from evaluator.program.dtypes import FLOAT_DTYPES
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
        self.spread_canaries()
        self.fill_inputs(inputs)
        self.spread_poison(seed)

    def fill_inputs(self, inputs: Sequence[cp.ndarray]) -> None:
        for number, given in enumerate(inputs):
            self.array(number)[...] = given

    def spread_poison(self, seed: int) -> None:
        for number, buffer in enumerate(self.plan.buffers):
            if buffer.role != "input":
                self._device.fill(self.addresses[number], poison(buffer.dtype, seed)[0].tobytes(), buffer.size)

    def spread_canaries(self) -> None:
        for _, _, slack in self.slacks():
            self._device.fill(slack.data.ptr, bytes([self._canary]), slack.nbytes)

    def check_canaries(self, rung: Rung) -> None:
        """Raises ProgramFault `out_of_bounds` where a write went beside a buffer but not as far as its guard."""
        for name, place, slack in self.slacks():
            if comparison.count_equal(slack, np.full(1, self._canary, np.uint8)) != slack.nbytes:
                message = f"a write went {place} buffer {name!r}, seen after the run"
                raise ProgramFault(Outcome.OUT_OF_BOUNDS, rung, message)

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


class TimedBuffers(GuardedBuffers):
    """Buffers that keep their addresses, aligned as a user's arrays would be, and the plan recorded on them."""

    def __init__(
        self,
        device: _core.CudaDevice,
        timer: _core.CudaTimer,
        plan: Plan,
        executable: Executable,
        make_room: Callable[[], None],
    ):
        super().__init__(device, plan, "left", CANARIES[0], make_room)
        self._timer, self._executable = timer, executable
        self._graph: _core.CudaGraph | None = None
        self._turns: list[int] = []  # elements by which each input is turned; empty: as they were filled
        self.spread_canaries()

    def fill_inputs(self, inputs: Sequence[cp.ndarray]) -> None:
        self._turns = []
        super().fill_inputs(inputs)

    def warm_up(self, seed: int) -> None:
        self.spread_poison(seed)
        self._executable.queue(self.addresses)  # library steps choose their algorithms here, outside the recording

    def record(self) -> None:
        self._graph, _ = record(self._device, lambda: self._executable.queue(self.addresses))

    def queue(self) -> None:
        assert self._graph is not None
        self._graph.launch()

    def queue_timed(self) -> None:
        self._timer.start()
        self.queue()
        self._timer.stop()

    @property
    def turned(self) -> bool:
        """Whether the inputs hold other contents than they were filled with."""
        return bool(self._turns)

    def turn(self, inputs: Sequence[cp.ndarray], generator: np.random.Generator) -> None:
        """Fills every input anew, floats turned by a secret number of elements: nothing that a replay left stays."""
        self._turns = [
            int(generator.integers(buffer.size)) if buffer.dtype in FLOAT_DTYPES and buffer.size else 0
            for buffer in self.plan.inputs
        ]
        for number, (given, turn) in enumerate(zip(inputs, self._turns, strict=True)):
            flat, source = self.array(number).reshape(-1), given.reshape(-1)
            flat[: flat.size - turn] = source[turn:]
            flat[flat.size - turn :] = source[:turn]

    def contents(self, inputs: Sequence[cp.ndarray]) -> list[cp.ndarray]:
        """What the inputs should hold, made from those they were filled with: a replay may have written to them."""
        return [
            cp.concatenate((given.reshape(-1)[turn:], given.reshape(-1)[:turn])).reshape(given.shape)
            for given, turn in zip(inputs, self._turns, strict=True)
        ]

    def seal(self, generator: np.random.Generator) -> "list[Seal]":
        """Poisons a few secret elements of every float output, before a replay that has to write them."""
        seals = []
        for view in self.plan.outputs:
            dtype = self.plan.dtype(view)
            if self.is_input(view) or view.size == 0 or dtype not in FLOAT_DTYPES:
                continue
            bits = self.bits(view.buffer)[view.offset : view.offset + view.size]
            one = Seal(bits, int(generator.integers(2**62)), poison(dtype, int(generator.integers(2**62))))
            comparison.seal(one.bits, one.seed, one.word)
            seals.append(one)
        return seals

    def count(self, seals: "Sequence[Seal]", left: cp.ndarray, strayed: cp.ndarray) -> None:
        """Queues the counting of sealed elements that a replay did not write, added to `left` [1], and of bytes beside
        the buffers that it did, added to `strayed` [1]."""
        for one in seals:
            comparison.count_sealed(one.bits, one.seed, one.word, left)
        for _, _, slack in self.slacks():
            comparison.count_changed(slack, self._canary, strayed)


class Seal(NamedTuple):
    """Secret elements of one output that were poisoned."""

    bits: cp.ndarray
    seed: int
    word: np.ndarray


def _guarded(device: _core.CudaDevice, nbytes: int, right: bool, make_room: Callable[[], None]) -> _core.GuardedBuffer:
    """Memory from the driver; what is only kept for later is given up where the driver has none left."""
    try:
        return _core.GuardedBuffer(device, nbytes, right)
    except _core.CudaError:
        make_room()
        return _core.GuardedBuffer(device, nbytes, right)
