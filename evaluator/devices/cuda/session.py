"""A session: one compiled plan on one device, run and replayed on arrays that lie there already. Needs CuPy."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from types import TracebackType

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda import faults
from evaluator.devices.cuda.buffers import CANARIES, GuardedBuffers
from evaluator.devices.cuda.comparison import differs
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.devices.cuda.execution import Executable
from evaluator.devices.cuda.room import with_room
from evaluator.devices.cuda.timed_plan import TimedPlan
from evaluator.program.dtypes import FLOAT_DTYPES
from evaluator.program.plan import Plan
from evaluator.records import Limits, Outcome, ProgramFault, Rung

Alike = Callable[[Sequence[cp.ndarray], Sequence[cp.ndarray]], bool]
"""(outputs, other outputs of the same inputs) -> whether they agree"""

_REPEATED = 6  # times after timing: a program that computes now and then may be in luck once


@dataclasses.dataclass(frozen=True)
class RunReport:
    """What one judged run did."""

    outputs: tuple[cp.ndarray, ...]  # in the plan's order, in memory that no later run is told of
    unwritten: tuple[int, ...]  # per output: elements that no step wrote
    modified: tuple[str, ...]  # names of inputs that the program changed
    state_changed: bool  # writable globals of the modules differ from what they were when they were loaded
    peak_bytes: int  # inputs, temporaries and outputs


class Session:
    """One plan on the device. Use as a context manager; a ProgramFault that breaks the context ends the process's use.

    Buffers lie between pages that nobody may access. A judged `run` has fresh ones; timed replays share one set and a
    graph, recorded at the first of them.
    """

    def __init__(
        self,
        device: _core.CudaDevice,
        timer: _core.CudaTimer,
        compiled: CompiledPlan,
        limits: Limits,
        make_room: Callable[[], None],
        beat: Callable[[], None],
    ):
        """`make_room` gives up memory that others hold for later, once the device has too little left; `beat` is called
        before every run and replay, each of which may take seconds.

        Raises ProgramFault for what the driver says against the plan's cubins.
        """
        self._device, self._timer, self._limits = device, timer, limits
        self._make_room, self._beat = make_room, beat
        self._plan: Plan = compiled.plan
        self._executable = self._driver(lambda: Executable(device, compiled), Rung.LAUNCH)
        self._globals = self._driver(self._executable.globals, Rung.LAUNCH)
        self._fresh_globals = self._driver(lambda: [cp.copy(array) for array in self._globals], Rung.LAUNCH)
        self._generator = np.random.default_rng()  # secret positions: what a program cannot foresee
        self._timed: TimedPlan | None = None
        self._runs = 0  # judged ones
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

        `order` has no meaning on a GPU, whose scheduler cannot be told. The buffers of earlier replays are given up.
        """
        self._timed = None  # its memory first
        return self._run(inputs, seed, guard)

    def _run(self, inputs: Sequence[cp.ndarray], seed: int, guard: str = "right") -> RunReport:
        self._beat()
        self._inputs = list(inputs)
        self._restore_globals()
        self._runs += 1
        canary = CANARIES[self._runs % len(CANARIES)]
        open_guarded = functools.partial(GuardedBuffers, self._device, self._plan, guard, canary, self._make_room)
        buffers = self._driver(open_guarded, Rung.MEMORY_SAFETY)
        left = self._judged_run(buffers, seed)
        if any(left) and self._has_integer_outputs():
            # An integer may equal the poison by chance: what another poison survives in as well is unwritten.
            left = [min(some, again) for some, again in zip(left, self._judged_run(buffers, ~seed), strict=True)]
        report = RunReport(
            outputs=tuple(buffers.view(view) for view in self._plan.outputs),
            unwritten=tuple(left),
            modified=self._modified(buffers, self._inputs),
            state_changed=self._restore_globals(),
            peak_bytes=self._plan.nbytes,
        )
        self._wait(Rung.MEMORY_SAFETY)  # guarded memory is unmapped on return, whoever still reads it
        return report

    def refill(self, inputs: Sequence[cp.ndarray]) -> None:
        """Gives the inputs of replays new contents at the same addresses, where the ones before have been run."""
        timed = self._timed or self._open_timed()
        self._inputs = list(inputs)
        timed.fill_inputs(self._inputs)

    def time(self, replays: int, *, forget: bool = True) -> float:
        """Microseconds of device time per replay, the L2 cache flushed before each.

        With `forget`, before each the inputs are filled anew, floats turned by a secret number of elements, and
        temporaries and outputs are poisoned: a program that remembers finds nothing, or the wrong contents. None of it
        is in the time.
        """
        timed = self._timed or self._open_timed()
        unwritten, strayed = cp.zeros(1, cp.uint32), cp.zeros(1, cp.uint32)
        for _ in range(replays):  # all queued at once: the host would otherwise take longer than a short program
            self._beat()
            if forget:
                self._forget_globals()
                timed.turn(self._inputs, self._generator)
                timed.buffers.spread_poison(self._secret_seed())
            seals = timed.seal(self._generator)
            self._driver(timed.queue_timed, Rung.TIMING)
            timed.count(seals, unwritten, strayed)
        total_us = self._driver(lambda: sum(self._timer.collect(replays * self._limits.kernel_s)), Rung.TIMING)
        if int(strayed[0]):
            timed.buffers.check_canaries(Rung.TIMING)  # names the buffer, unless a later replay put back what was there
            message = "a timed replay wrote beside a buffer, and a later one put back what was there"
            raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.TIMING, message)
        if int(unwritten[0]):
            message = "a timed replay left elements of an output unwritten that earlier runs wrote"
            raise ProgramFault(Outcome.UNWRITTEN_OUTPUT, Rung.TIMING, message)
        return total_us / replays

    def step_us(self) -> list[float]:
        """Microseconds of each step of the plan, queued one by one after a flush of the L2 cache."""
        timed = self._timed or self._open_timed()
        timed.fill_inputs(self._inputs)
        self._driver(lambda: self._executable.queue(timed.buffers.addresses, self._timer), Rung.TIMING)
        return self._driver(lambda: self._timer.collect(self._limits.kernel_s), Rung.TIMING)

    def outputs(self, alike: Alike) -> tuple[cp.ndarray, ...]:
        """Copies of the outputs for the inputs as given, after more replays where they had been turned.

        The last timed replay is repeated first in fresh memory: ProgramFault `wrong_after_timing` where the two are not
        `alike`.
        """
        timed = self._timed or self._open_timed()
        if timed.turned:
            self._audit(timed, alike)
            seen = self._replayed(timed)
            for _ in range(_REPEATED - 1):
                if not self._agree(alike, seen, self._replayed(timed)):
                    message = "replays of the same contents at the same addresses gave different results"
                    raise ProgramFault(Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, message)
            return seen
        self._check_unchanged(timed, self._inputs, Rung.RECHECK)
        return self._driver(functools.partial(self._copies, timed.buffers), Rung.RECHECK)

    def _replayed(self, timed: TimedPlan) -> tuple[cp.ndarray, ...]:
        """The outputs for the inputs as given, of a replay that nothing tells from those that are timed."""
        self._beat()
        timed.fill_inputs(self._inputs)
        timed.buffers.spread_poison(self._secret_seed())
        self._driver(timed.queue_timed, Rung.RECHECK)
        self._driver(lambda: self._timer.collect(self._limits.kernel_s), Rung.RECHECK)
        timed.buffers.check_canaries(Rung.RECHECK)
        self._check_unchanged(timed, self._inputs, Rung.RECHECK)
        return self._driver(functools.partial(self._copies, timed.buffers), Rung.RECHECK)

    def _copies(self, buffers: GuardedBuffers) -> tuple[cp.ndarray, ...]:
        return tuple(cp.copy(buffers.view(view)) for view in self._plan.outputs)

    def _forget_globals(self) -> None:
        """Before a timed replay: what an earlier one kept in the modules' variables is a fault, as in judged runs."""
        if self._globals and self._restore_globals():
            message = "a timed launch changed writable globals of a module, which judged runs left as they were"
            raise ProgramFault(Outcome.STATEFUL, Rung.TIMING, message)

    def _audit(self, timed: TimedPlan, alike: Alike) -> None:
        given = self._inputs
        contents = self._driver(lambda: timed.contents(given), Rung.RECHECK)
        self._check_unchanged(timed, contents, Rung.RECHECK)
        seen = self._driver(functools.partial(self._copies, timed.buffers), Rung.RECHECK)
        again = self._run(contents, self._secret_seed())
        self._inputs = given
        if not self._agree(alike, seen, again.outputs):
            message = "a timed launch gave other results than the same inputs in fresh memory"
            raise ProgramFault(Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, message)

    def _agree(self, alike: Alike, some: Sequence[cp.ndarray], others: Sequence[cp.ndarray]) -> bool:
        return self._driver(lambda: alike(some, others), Rung.RECHECK)

    def _open_timed(self) -> TimedPlan:
        if not self._inputs:
            raise RuntimeError("run the plan on some inputs before timing it")
        # Aligned as a user's arrays would be, hence the guard on the left.
        open_guarded = functools.partial(GuardedBuffers, self._device, self._plan, "left", CANARIES[0], self._make_room)
        buffers = self._driver(open_guarded, Rung.TIMING)
        timed = TimedPlan(self._device, self._timer, self._executable, buffers)
        timed.fill_inputs(self._inputs)
        self._driver(lambda: timed.warm_up(self._secret_seed()), Rung.TIMING)
        self._wait(Rung.TIMING)
        timed.buffers.check_canaries(Rung.TIMING)
        self._check_unchanged(timed, self._inputs, Rung.TIMING)
        self._driver(timed.record, Rung.TIMING)
        self._timed = timed
        return timed

    def _judged_run(self, buffers: GuardedBuffers, seed: int) -> list[int]:
        """One pass from fresh poison. Elements of each output that still hold it."""
        buffers.prepare(self._inputs, seed)
        self._wait(Rung.MEMORY_SAFETY)
        self._driver(lambda: self._executable.queue(buffers.addresses), Rung.MEMORY_SAFETY)
        self._wait(Rung.MEMORY_SAFETY)
        buffers.check_canaries(Rung.MEMORY_SAFETY)
        return [buffers.poisoned(view, seed) for view in self._plan.outputs]

    def _secret_seed(self) -> int:
        return int(self._generator.integers(2**62))

    def _check_unchanged(self, timed: TimedPlan, inputs: Sequence[cp.ndarray], rung: Rung) -> None:
        if names := self._modified(timed.buffers, inputs):
            message = f"timed launches changed the input {', '.join(names)}; inputs must stay as they were given"
            raise ProgramFault(Outcome.MODIFIED_INPUT, rung, message)

    def _modified(self, buffers: GuardedBuffers, inputs: Sequence[cp.ndarray]) -> tuple[str, ...]:
        return tuple(
            buffer.name
            for number, (buffer, given) in enumerate(zip(self._plan.inputs, inputs, strict=True))
            if differs(buffers.array(number), given)
        )

    def _restore_globals(self) -> bool:
        """Whether the program's globals changed; they are as loaded afterwards."""
        changed = False
        for array, fresh in zip(self._globals, self._fresh_globals, strict=True):
            if differs(array, fresh):
                changed = True
                array[...] = fresh
        return changed

    def _has_integer_outputs(self) -> bool:
        return any(self._plan.dtype(view) not in FLOAT_DTYPES for view in self._plan.outputs)

    def _wait(self, rung: Rung) -> None:
        self._driver(lambda: self._device.wait(self._limits.kernel_s), rung)

    def _driver(self, call: Callable, rung: Rung):
        """The call's result; what the driver says against it is a fault of the program.

        What runs out of memory is called a second time, with more room.
        """
        try:
            return with_room(call, self._make_room)
        except (_core.CudaError, _core.CudaDeadline) as error:
            raise faults.fault(error, rung) from error
        except cp.cuda.memory.OutOfMemoryError as error:
            raise ProgramFault(Outcome.OUT_OF_MEMORY, rung, f"the device is out of memory: {error}") from error
        except Exception as error:
            self._blame_kernels(rung, error)
            raise

    def _blame_kernels(self, rung: Rung, seen: Exception) -> None:
        """Raises the fault of a kernel that ran before `seen`: a library is often the first to meet what it broke."""
        try:
            self._device.wait(self._limits.kernel_s)
        except (_core.CudaError, _core.CudaDeadline) as error:
            raise faults.fault(error, rung) from seen
