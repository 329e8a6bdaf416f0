"""A session: one compiled plan on one device, run and replayed on arrays that lie there already. Needs CuPy."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from types import TracebackType

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda import faults, layout
from evaluator.devices.cuda.comparison import count_equal, differs
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.devices.cuda.execution import Executable
from evaluator.devices.poison import CANARY, poison
from evaluator.program.dtypes import FLOAT_DTYPES, ITEM_BYTES
from evaluator.program.plan import Plan, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung

_SEALED_ELEMENTS = 16  # per output, looked at after each sample of replays


@dataclasses.dataclass(frozen=True)
class RunReport:
    """What one judged run did."""

    outputs: tuple[cp.ndarray, ...]  # in the plan's order; copies
    unwritten: tuple[int, ...]  # per output: elements that no step wrote
    modified: tuple[str, ...]  # names of inputs that the program changed
    state_changed: bool  # writable globals of the modules differ from what they were when they were loaded
    peak_bytes: int  # inputs, temporaries and outputs


class Session:
    """One plan on the device. Use as a context manager; a ProgramFault that breaks the context ends the process's use.

    A judged `run` has memory of its own between pages that nobody may access, at fresh addresses. Timed replays have
    one set of buffers and a graph, recorded at the first of them.
    """

    def __init__(self, device: _core.CudaDevice, timer: _core.CudaTimer, compiled: CompiledPlan, limits: Limits):
        """Raises ProgramFault `launch_error` where the driver does not take the plan's cubins."""
        self._device, self._timer, self._compiled, self._limits = device, timer, compiled, limits
        self._plan: Plan = compiled.plan
        self._executable = self._driver(lambda: Executable(device, compiled), Rung.LAUNCH)
        self._fresh_globals = [cp.copy(array) for array in self._executable.globals()]
        self._generator = np.random.default_rng()  # secret positions: what a program cannot foresee
        self._timed: _TimedBuffers | None = None
        self._inputs: list[cp.ndarray] = []

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives up the memory."""
        self._timed, self._inputs = None, []

    def run(self, inputs: Sequence[cp.ndarray], order: str = "", seed: int = 0, guard: str = "right") -> RunReport:
        """Run the plan once on `inputs` and say what happened. Raises ProgramFault for what the program did wrong.

        `order` has no meaning on a GPU, whose scheduler cannot be told.
        """
        self._inputs = list(inputs)
        buffers = self._driver(lambda: _GuardedBuffers(self._device, self._plan, guard), Rung.MEMORY_SAFETY)
        left = self._judged_run(buffers, seed)
        if any(left) and self._has_integer_outputs():
            # An integer may equal the poison by chance: what another poison survives in as well is unwritten.
            left = [min(some, again) for some, again in zip(left, self._judged_run(buffers, ~seed), strict=True)]
        return RunReport(
            outputs=tuple(cp.copy(buffers.view(view)) for view in self._plan.outputs),
            unwritten=tuple(left),
            modified=self._modified(buffers),
            state_changed=self._restore_globals(),
            peak_bytes=self._plan.nbytes,
        )

    def refill(self, inputs: Sequence[cp.ndarray]) -> None:
        """Gives the inputs of replays new contents at the same addresses, where the ones before have been run."""
        timed = self._timed or self._open_timed()
        self._inputs = list(inputs)
        timed.fill_inputs(self._inputs)

    def time(self, replays: int, *, forget: bool = True) -> float:
        """Microseconds of device time per replay, the L2 cache flushed before each.

        Before each, two elements of every float input trade places, and, with `forget`, temporaries and outputs are
        poisoned: a program that remembers finds nothing, or the wrong contents. None of it is in the time.
        """
        timed = self._timed or self._open_timed()
        total_us = 0.0
        for _ in range(replays):
            if forget:
                timed.swap(self._generator)
                timed.spread_poison(int(self._generator.integers(2**62)))
            seals = timed.seal(self._generator)
            self._driver(timed.queue_timed, Rung.TIMING)
            total_us += self._driver(lambda: sum(self._timer.collect(self._limits.kernel_s)), Rung.TIMING)
            if timed.broken(seals):
                message = "a timed replay left elements of an output unwritten that earlier runs wrote"
                raise ProgramFault(Outcome.UNWRITTEN_OUTPUT, Rung.TIMING, message)
        return total_us / replays

    def outputs(self) -> tuple[cp.ndarray, ...]:
        """Copies of the outputs for the inputs as given, after one more replay where elements had traded places.

        The last timed replay is repeated first in fresh memory: ProgramFault `wrong_after_timing` where they differ.
        """
        timed = self._timed or self._open_timed()
        if timed.swapped:
            self._audit(timed)
            timed.unswap()
            self._driver(timed.queue, Rung.RECHECK)
            self._wait(Rung.RECHECK)
        if names := [b.name for b, x in zip(self._plan.inputs, self._inputs, strict=True) if timed.changed(b.name, x)]:
            message = f"timed launches changed the input {', '.join(names)}; inputs must stay as they were given"
            raise ProgramFault(Outcome.MODIFIED_INPUT, Rung.RECHECK, message)
        return tuple(cp.copy(timed.view(view)) for view in self._plan.outputs)

    def _audit(self, timed: "_TimedBuffers") -> None:
        given = self._inputs
        seen = [cp.copy(timed.view(view)) for view in self._plan.outputs]
        again = self.run([cp.copy(timed.array(number)) for number in range(len(given))])
        self._inputs = given
        if not all(_close(one, other) for one, other in zip(seen, again.outputs, strict=True)):
            message = "a timed launch gave other results than the same inputs in fresh memory"
            raise ProgramFault(Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, message)

    def _open_timed(self) -> "_TimedBuffers":
        if not self._inputs:
            raise RuntimeError("run the plan on some inputs before timing it")
        make = functools.partial(_TimedBuffers, self._device, self._timer, self._plan, self._executable)
        self._timed = self._driver(make, Rung.TIMING)
        self._timed.fill_inputs(self._inputs)
        self._driver(self._timed.warm_up, Rung.TIMING)
        self._wait(Rung.TIMING)
        self._driver(self._timed.record, Rung.TIMING)
        return self._timed

    def _judged_run(self, buffers: "_GuardedBuffers", seed: int) -> list[int]:
        """One pass from fresh poison. Elements of each output that still hold it."""
        buffers.prepare(self._inputs, seed)
        self._wait(Rung.MEMORY_SAFETY)
        self._driver(lambda: self._executable.queue(buffers.addresses), Rung.MEMORY_SAFETY)
        self._wait(Rung.MEMORY_SAFETY)
        buffers.check_canaries()
        return [buffers.poisoned(view, seed) for view in self._plan.outputs]

    def _modified(self, buffers: "_GuardedBuffers") -> tuple[str, ...]:
        return tuple(
            buffer.name
            for number, (buffer, given) in enumerate(zip(self._plan.inputs, self._inputs, strict=True))
            if differs(buffers.array(number), given)
        )

    def _restore_globals(self) -> bool:
        """Whether the program's globals changed; they are as loaded afterwards."""
        changed = False
        for array, fresh in zip(self._executable.globals(), self._fresh_globals, strict=True):
            if differs(array, fresh):
                changed = True
                array[...] = fresh
        return changed

    def _has_integer_outputs(self) -> bool:
        return any(self._plan.dtype(view) not in FLOAT_DTYPES for view in self._plan.outputs)

    def _wait(self, rung: Rung) -> None:
        self._driver(lambda: self._device.wait(self._limits.kernel_s), rung)

    def _driver(self, call: Callable, rung: Rung):
        """The call's result; what the driver says against it is a fault of the program."""
        try:
            return call()
        except (_core.CudaError, _core.CudaDeadline) as error:
            raise faults.fault(error, rung) from error
        except cp.cuda.memory.OutOfMemoryError as error:
            raise ProgramFault(Outcome.OUT_OF_MEMORY, rung, f"the device is out of memory: {error}") from error


class _Buffers:
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


class _GuardedBuffers(_Buffers):
    """Buffers between unmapped pages, with canaries in what is left of their own pages."""

    def __init__(self, device: _core.CudaDevice, plan: Plan, guard: str):
        self._guarded = [_guarded(device, buffer.nbytes, guard == "right") for buffer in plan.buffers]
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

    def _slack(self):
        for guarded in self._guarded:
            for address, nbytes in (guarded.before, guarded.behind):
                if nbytes:
                    yield layout.bits(address, nbytes, "uint8", guarded)


class _TimedBuffers(_Buffers):
    """Buffers of CuPy's pool, as a user's arrays would be, and the plan recorded on them as a graph."""

    def __init__(self, device: _core.CudaDevice, timer: _core.CudaTimer, plan: Plan, executable: Executable):
        arrays = [cp.empty(max(1, buffer.nbytes), cp.uint8) for buffer in plan.buffers]
        super().__init__(plan, [array.data.ptr for array in arrays], arrays)
        self._device, self._timer, self._executable = device, timer, executable
        self._graph: _core.CudaGraph | None = None
        self._swaps: list[tuple[cp.ndarray, int, int]] = []

    @property
    def swapped(self) -> bool:
        return bool(self._swaps)

    def fill_inputs(self, inputs: Sequence[cp.ndarray]) -> None:
        self._swaps = []
        super().fill_inputs(inputs)

    def warm_up(self) -> None:
        self.spread_poison(0)
        self._executable.queue(self.addresses)  # library steps choose their algorithms here, outside the recording

    def record(self) -> None:
        self._device.begin_capture()
        try:
            self._executable.queue(self.addresses)
        finally:
            self._graph = _core.CudaGraph(self._device)

    def queue(self) -> None:
        assert self._graph is not None
        self._graph.launch()

    def queue_timed(self) -> None:
        self._timer.start()
        self.queue()
        self._timer.stop()

    def swap(self, generator: np.random.Generator) -> None:
        for number, buffer in enumerate(self.plan.inputs):
            if buffer.dtype in FLOAT_DTYPES and buffer.size > 1:
                i, j = (int(index) for index in generator.integers(0, buffer.size, 2))
                self._exchange(self.bits(number), i, j)
                self._swaps.append((self.bits(number), i, j))

    def unswap(self) -> None:
        for bits, i, j in reversed(self._swaps):
            self._exchange(bits, i, j)
        self._swaps = []

    def _exchange(self, bits: cp.ndarray, i: int, j: int) -> None:
        """Without waiting for the device."""
        nbytes = bits.dtype.itemsize
        spare = cp.empty(1, bits.dtype)
        first, second = bits.data.ptr + i * nbytes, bits.data.ptr + j * nbytes
        self._device.copy(spare.data.ptr, first, nbytes)
        self._device.copy(first, second, nbytes)
        self._device.copy(second, spare.data.ptr, nbytes)

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
            for place in generator.integers(0, view.size, _SEALED_ELEMENTS):
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

    def changed(self, name: str, given: cp.ndarray) -> bool:
        number = next(i for i, buffer in enumerate(self.plan.inputs) if buffer.name == name)
        return differs(self.array(number), given)


def _guarded(device: _core.CudaDevice, nbytes: int, right: bool) -> _core.GuardedBuffer:
    """Memory from the driver; what CuPy's pool only keeps for later is given up where the driver has none left."""
    try:
        return _core.GuardedBuffer(device, nbytes, right)
    except _core.CudaError:
        cp.get_default_memory_pool().free_all_blocks()
        return _core.GuardedBuffer(device, nbytes, right)


def _close(one: cp.ndarray, other: cp.ndarray) -> bool:
    """Alike up to the order in which atomics happen to add."""
    if one.dtype.kind != "f":
        return not differs(one, other)
    return bool(cp.allclose(one, other, rtol=1e-3, atol=1e-3 * float(cp.abs(other).mean() or 1.0), equal_nan=True))
