"""The buffers of a plan on the device: guarded ones for judged runs, ordinary ones for timed replays. Needs CuPy."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda import layout
from evaluator.devices.cuda.comparison import count_equal
from evaluator.devices.cuda.execution import Executable
from evaluator.devices.cuda.recording import record
from evaluator.devices.poison import CANARY, poison
from evaluator.program.dtypes import FLOAT_DTYPES, ITEM_BYTES
from evaluator.program.plan import Plan, View
from evaluator.records import Outcome, ProgramFault, Rung

SEALED_ELEMENTS = 16  # per output, looked at after each timed replay


class Buffers:
    """The buffers of a plan at some addresses."""

    def __init__(self, plan: Plan, addresses: Sequence[int], owners: Sequence[object]):
        self.plan, self.addresses, self._owners = plan, list(addresses), list(owners)

    def array(self, number: int) -> cp.ndarray:
        buffer = self.plan.buffers[number]
        dtype = layout.numpy_dtype(buffer.dtype)
        return layout.array(self.addresses[number], buffer.shape, dtype, self._owners[number])

    def bits(self, number: int) -> cp.ndarray:
        buffer = self.plan.buffers[number]
        return layout.bits(self.addresses[number], buffer.size, buffer.dtype, self._owners[number])

    def view(self, view: View) -> cp.ndarray:
        """The elements of a view; not a copy."""
        flat = self.array(view.buffer).reshape(-1)
        return flat[view.offset : view.offset + view.size].reshape(view.shape)

    def fill_inputs(self, inputs: Sequence[cp.ndarray]) -> None:
        for number, given in enumerate(inputs):
            self.array(number)[...] = given

    def spread_poison(self, seed: int) -> None:
        for number, buffer in enumerate(self.plan.buffers):
            if buffer.role != "input" and buffer.size:
                self.bits(number).fill(poison(buffer.dtype, seed)[0])

    def is_input(self, view: View) -> bool:
        return self.plan.buffers[view.buffer].role == "input"


class GuardedBuffers(Buffers):
    """Buffers between unmapped pages, with canaries in what is left of their own pages."""

    def __init__(self, device: _core.CudaDevice, plan: Plan, guard: str, make_room: Callable[[], None]):
        self._guarded = [_guarded(device, buffer.nbytes, guard == "right", make_room) for buffer in plan.buffers]
        super().__init__(plan, [guarded.address for guarded in self._guarded], self._guarded)

    def prepare(self, inputs: Sequence[cp.ndarray], seed: int) -> None:
        for slack in self._slack():
            slack.fill(CANARY)
        self.fill_inputs(inputs)
        self.spread_poison(seed)

    def check_canaries(self) -> None:
        """Raises ProgramFault `out_of_bounds` where a write went beside a buffer but not as far as its guard."""
        for guarded, buffer in zip(self._guarded, self.plan.buffers, strict=True):
            for (address, nbytes), place in ((guarded.before, "before"), (guarded.behind, "behind")):
                slack = layout.bits(address, nbytes, "uint8", guarded)
                if nbytes and int((slack != CANARY).any()):
                    message = f"a write went {place} buffer {buffer.name!r}, seen after the run"
                    raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, message)

    def poisoned(self, view: View, seed: int) -> int:
        """Elements of an output that no step wrote; none of an input that is returned."""
        if self.is_input(view):
            return 0
        bits = self.bits(view.buffer)[view.offset : view.offset + view.size]
        return count_equal(bits, poison(self.plan.dtype(view), seed))

    def _slack(self) -> Iterator[cp.ndarray]:
        for guarded in self._guarded:
            for address, nbytes in (guarded.before, guarded.behind):
                if nbytes:
                    yield layout.bits(address, nbytes, "uint8", guarded)


class TimedBuffers(Buffers):
    """Buffers of CuPy's pool, as a user's arrays would be, and the plan recorded on them as a graph."""

    def __init__(self, device: _core.CudaDevice, timer: _core.CudaTimer, plan: Plan, executable: Executable):
        arrays = [cp.empty(max(1, buffer.nbytes), cp.uint8) for buffer in plan.buffers]
        super().__init__(plan, [array.data.ptr for array in arrays], arrays)
        self._device, self._timer, self._executable = device, timer, executable
        self._graph: _core.CudaGraph | None = None
        self._turns: list[int] = []  # elements by which each input is turned; empty: as they were filled

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

    def seal(self, generator: np.random.Generator) -> list[tuple[int, np.ndarray]]:
        """Poisons a few secret elements of every float output. (address, poison) of each."""
        seals = []
        word_seed = int(generator.integers(2**62))
        for view in self.plan.outputs:
            dtype = self.plan.dtype(view)
            if self.is_input(view) or view.size == 0 or dtype not in FLOAT_DTYPES:
                continue
            word, width = poison(dtype, word_seed), ITEM_BYTES[dtype]
            start = self.addresses[view.buffer] + view.offset * width
            for place in generator.integers(0, view.size, SEALED_ELEMENTS):
                self._device.fill(start + int(place) * width, word.tobytes(), 1)
                seals.append((start + int(place) * width, word))
        return seals

    def broken(self, seals: Sequence[tuple[int, np.ndarray]]) -> bool:
        """Whether any sealed element is as it was sealed."""
        if not seals:
            return False
        for _, group in itertools.groupby(seals, key=lambda seal: seal[1].tobytes()):
            some = list(group)
            width = some[0][1].dtype.itemsize
            found = cp.empty(len(some), some[0][1].dtype)
            for number, (address, _) in enumerate(some):
                self._device.copy(found.data.ptr + number * width, address, width)
            if bool((cp.asnumpy(found) == some[0][1][0]).any()):
                return True
        return False


def _guarded(device: _core.CudaDevice, nbytes: int, right: bool, make_room: Callable[[], None]) -> _core.GuardedBuffer:
    """Memory from the driver; what is only kept for later is given up where the driver has none left."""
    try:
        return _core.GuardedBuffer(device, nbytes, right)
    except _core.CudaError:
        make_room()
        return _core.GuardedBuffer(device, nbytes, right)
