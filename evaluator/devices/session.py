"""A session: one compiled plan in one confined process, run and replayed on inputs that the caller gives."""

import dataclasses
from collections.abc import Callable, Sequence
from types import TracebackType

import numpy as np

from evaluator import confinement
from evaluator.devices import faults, layout
from evaluator.devices.canaries import KINDS, Canaries
from evaluator.devices.compilation import CompiledObject
from evaluator.devices.layout import SharedBuffers
from evaluator.devices.poison import numpy_dtype, poison
from evaluator.devices.runner_process import RunnerProcess, is_fault
from evaluator.program.dtypes import FLOAT_DTYPES
from evaluator.program.plan import Plan, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung

_SEALED_ELEMENTS = 16  # per output, looked at after each replay
_AUDITED_REPLAYS = 3  # fewer timed replays than this are too few to be told from judged runs


@dataclasses.dataclass(frozen=True)
class CompiledPlan:
    """A plan with the object and the tape that execute it. Can be pickled and used by many sessions."""

    plan: Plan
    compiled: CompiledObject
    tape: bytes
    shared_bytes: int  # most shared memory of any launch, static and dynamic

    @property
    def compile_ms(self) -> float:
        return self.compiled.compile_ms

    @property
    def report(self) -> dict[str, int | None]:
        """What a verdict says of the compiled kernels; a host compiler knows no registers of a device."""
        return {"registers": None, "spills": None, "shared_bytes": self.shared_bytes}


@dataclasses.dataclass(frozen=True)
class RunReport:
    """What one judged run did."""

    outputs: tuple[np.ndarray, ...]  # copies, in the plan's order
    unwritten: tuple[int, ...]  # per output: elements that no step wrote
    modified: tuple[str, ...]  # names of inputs that the program changed
    state_changed: bool  # writable globals of the module differ from what they were when it was loaded
    peak_bytes: int  # inputs, temporaries and outputs
    cpu_us: float  # CPU time of this run, threads together


class Session:
    """One confined runner. Use as a context manager; a ProgramFault ends it."""

    def __init__(self, compiled: CompiledPlan, limits: Limits, threads: int = 1):
        """`threads`: OS threads that share the blocks of a judged run; timed replays use one."""
        self._compiled, self._limits, self._plan = compiled, limits, compiled.plan
        total = sum(region.region_bytes for region in layout.regions(self._plan))
        self._runner = RunnerProcess(
            str(compiled.compiled.path),
            compiled.tape,
            total or layout.mmap.PAGESIZE,
            threads=threads,
            static_shared_bytes=compiled.compiled.facts.thread_local_bytes,
            cpu_s=_cpu_budget_s(limits, threads),
            layers=limits.confinement,
        )
        if is_fault(self._runner.ready):
            self._runner.close()
            raise faults.fault(self._runner.ready, self._plan, compiled.compiled.path, Rung.LAUNCH)
        in_force = {"rlimits": "rlimits" in limits.confinement, **self.confinement}
        confinement.warn("the emulator", (layer for layer, held in in_force.items() if not held))
        self._buffers = SharedBuffers(self._plan, self._runner.memory)
        self._guard = "right"
        self._generator = np.random.default_rng()  # secret positions: what a program cannot foresee
        self._inputs: list[np.ndarray] | None = None
        self._unseen = False  # whether the inputs' contents are new since the last launch
        self._swaps: list[tuple[np.ndarray, int, int]] = []  # exchanged elements of inputs, to be put back
        self._canaries = Canaries(self._plan, self._buffers)
        self._runs = 0  # calls of `run`
        self._poison: dict[str, np.ndarray] = {}  # by dtype
        self._replays = 0  # timed ones since the inputs were given
        self._sample: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]] | None = None  # inputs, outputs of one

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._runner.close()

    @property
    def confinement(self) -> dict[str, int | bool]:
        """What the kernel offered: landlock's ABI version (0: none) and whether seccomp filters are in force."""
        return {"landlock": self._runner.ready.flags >> 1, "seccomp": bool(self._runner.ready.flags & 1)}

    def run(
        self, inputs: Sequence[np.ndarray], order: str = "forward", seed: int = 0, guard: str = "right"
    ) -> RunReport:
        """Run the plan once on `inputs` and say what happened. Raises ProgramFault for what the program did wrong."""
        self._guard = guard
        self._runs += 1
        self.refill(inputs)
        kind = self._runs % len(KINDS)
        report, cpu_us = self._judged_run(order, seed, kind, poison_seed=seed)
        left = self._poisoned_elements(poison_seed=seed)
        if any(mask.any() for mask in left) and self._has_integer_outputs():
            # An integer may equal the poison by chance: only what another poison survives in as well is unwritten.
            self.refill(inputs)
            report, cpu_us = self._judged_run(order, seed, kind, poison_seed=~seed)
            left = [mask & again for mask, again in zip(left, self._poisoned_elements(~seed), strict=True)]
        done = RunReport(
            outputs=self._current_outputs(),
            unwritten=tuple(int(np.count_nonzero(mask)) for mask in left),
            modified=self._modified_inputs(),
            state_changed=bool(report.flags & 1),
            peak_bytes=self._plan.nbytes,
            cpu_us=cpu_us,
        )
        if self._runs == 2 and self._canaries.odd_ends:  # once a session; those for timing are run only once
            self._check_odd_ends(done.outputs, inputs, order, seed, kind)
        return done

    def refill(self, inputs: Sequence[np.ndarray]) -> None:
        """Give the inputs new contents at the same addresses."""
        if not self._runner.alive:
            raise RuntimeError("this session is over: a fault of the program, or close(), ended its process")
        wanted = self._plan.inputs
        if len(inputs) != len(wanted):
            raise ValueError(f"the plan has {len(wanted)} inputs, got {len(inputs)}")
        copies = []
        for number, (array, buffer) in enumerate(zip(inputs, wanted, strict=True)):
            dtype = numpy_dtype(buffer.dtype)
            array = np.asarray(array, order="C")  # of no dimension too
            if array.dtype != dtype or array.shape != buffer.shape:
                seen = f"{array.dtype} {array.shape}"
                raise ValueError(f"input {buffer.name!r}: expected {dtype} {buffer.shape}, got {seen}")
            bits = array.reshape(-1).view(f"u{dtype.itemsize}")
            self._buffers.raw(number, self._guard)[:] = bits
            copies.append(bits.copy())
        self._inputs = copies
        self._unseen, self._swaps, self._replays, self._sample = True, [], 0, None

    def time(self, replays: int, *, forget: bool = True) -> float:
        """Microseconds of CPU time per replay, on one thread, read from outside the process.

        No replay sees contents that an earlier one saw: two elements of each float input trade places before it, unless
        `refill` has just brought new ones. Nor does it find what an earlier one left, lest it compute changes alone:
        temporaries and outputs are poisoned, stacks and globals wiped, and that time is not counted. Without `forget`
        all of that stays, as it would for the program's user, and a few elements of each output are poisoned. `outputs`
        puts the inputs back. Raises ProgramFault.
        """
        if self._inputs is None:
            raise RuntimeError("run the plan on some inputs before timing it")
        self._draw_poison(int(self._generator.integers(2**63)))
        spent_s = 0.0
        for _ in range(replays):
            if not self._unseen:
                self._swaps += self._swap_elements()
            spent_s += self._replay(forget)
            self._replays += 1
            if self._generator.integers(self._replays) == 0:
                self._sample = self._current_inputs(), self._current_outputs()
        return 1e6 * spent_s / replays

    def step_us(self) -> None:
        """The emulator runs a plan in one go."""

    def outputs(self, alike: Callable | None = None) -> tuple[np.ndarray, ...]:
        """Copies of the outputs for the inputs as given, from the process as timing left it.

        `alike` has no meaning on the emulator, where equal inputs give equal bits. After several timed replays, one of
        them, picked at random, is repeated in a fresh process first: raises ProgramFault `wrong_after_timing` where the
        two differ.
        """
        if self._replays >= _AUDITED_REPLAYS:
            self._audit()
        if self._swaps:
            for bits, i, j in reversed(self._swaps):
                bits[i], bits[j] = bits[j], bits[i]
            self._swaps = []
            self._replay(forget=True)
        self._check_canaries(Rung.RECHECK)
        if names := self._modified_inputs():
            self.close()
            message = f"timed launches changed the input {', '.join(names)}; inputs must stay as they were given"
            raise ProgramFault(Outcome.MODIFIED_INPUT, Rung.RECHECK, message)
        return self._current_outputs()

    def _audit(self) -> None:
        """A program that treats timed launches otherwise has to remember them; a fresh process remembers nothing."""
        assert self._sample is not None
        inputs, outputs = self._sample
        self._replays, self._sample = 0, None
        with Session(self._compiled, self._limits) as fresh:
            again = fresh.run(inputs, guard=self._guard).outputs
        if not all(_same_bits(one, other) for one, other in zip(outputs, again, strict=True)):
            self.close()
            message = "a timed launch gave other results than the same inputs in a fresh process"
            raise ProgramFault(Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, message)

    def _replay(self, forget: bool) -> float:
        """Seconds of CPU time of one pass, which finds nothing of earlier ones if told to `forget`.

        The clock is read last: whatever the process does while its traces are looked at is counted, and by then it has
        gone to sleep, so that the system has its time in full.
        """
        if forget:
            self._spread_poison()
            self._answered(self._runner.forget(deadline_s=self._limits.kernel_s, rung=Rung.TIMING), Rung.TIMING)
        seals = self._seal_outputs()
        started = self._runner.cpu_s()
        self._command("forward", 0, Rung.TIMING, judged=False)
        self._unseen = False
        self._check_seals(seals)
        self._check_canaries(Rung.TIMING)  # each time: beside a buffer is room to remember what an earlier replay found
        return self._runner.cpu_s() - started

    def _current_inputs(self) -> tuple[np.ndarray, ...]:
        views = [View(number, 0, buffer.shape) for number, buffer in enumerate(self._plan.inputs)]
        return tuple(self._buffers.array(view, self._guard).copy() for view in views)

    def _current_outputs(self) -> tuple[np.ndarray, ...]:
        return tuple(self._buffers.array(view, self._guard).copy() for view in self._plan.outputs)

    def _command(self, order: str, seed: int, rung: Rung, *, judged: bool) -> faults.Report:
        report = self._runner.run(
            order=order, seed=seed, guard=self._guard, deadline_s=self._limits.kernel_s, rung=rung, judged=judged
        )
        return self._answered(report, rung)

    def _answered(self, report: faults.Report, rung: Rung) -> faults.Report:
        if is_fault(report):
            self._runner.close()
            raise faults.fault(report, self._plan, self._compiled.compiled.path, rung)
        return report

    def _judged_run(self, order: str, seed: int, kind: int, poison_seed: int) -> tuple[faults.Report, float]:
        """Fresh poison, canaries of a kind, one pass, canaries looked at. Returns the report and CPU microseconds."""
        self._canaries.lay(self._guard, kind, poison_seed)
        self._draw_poison(poison_seed)
        self._spread_poison()
        started = self._runner.cpu_s()
        report = self._command(order, seed, Rung.MEMORY_SAFETY, judged=True)
        self._unseen = False
        cpu_us = 1e6 * (self._runner.cpu_s() - started)
        self._check_canaries(Rung.MEMORY_SAFETY)
        return report, cpu_us

    def _check_odd_ends(
        self, outputs: tuple[np.ndarray, ...], inputs: Sequence[np.ndarray], order: str, seed: int, kind: int
    ) -> None:
        """The run that gave `outputs` again, with canaries of other kinds: what comes out must be the same."""

        def differs(kind: int) -> bool:
            self.refill(inputs)
            self._judged_run(order, seed, kind, poison_seed=seed)
            return not all(_same_bits(one, other) for one, other in zip(outputs, self._current_outputs(), strict=True))

        others = [each for each in KINDS if each != kind]
        if any(map(differs, others)) and not differs(kind):
            self._runner.close()
            message = (
                "an output changes with the bytes right behind a buffer: look for an index beyond the last element"
            )
            raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, message)

    def _check_canaries(self, rung: Rung) -> None:
        if message := self._canaries.disturbed():
            self._runner.close()
            raise ProgramFault(Outcome.OUT_OF_BOUNDS, rung, message)

    def _is_input(self, view: View) -> bool:
        return self._plan.buffers[view.buffer].role == "input"

    def _has_integer_outputs(self) -> bool:
        return any(self._plan.dtype(view) not in FLOAT_DTYPES for view in self._plan.outputs)

    def _poisoned_elements(self, poison_seed: int) -> list[np.ndarray]:
        """Per output, which elements still hold the poison; none of an input that is returned."""
        masks = []
        for view in self._plan.outputs:
            bits = self._buffers.raw(view.buffer, self._guard)[view.offset : view.offset + view.size]
            word = poison(self._plan.dtype(view), poison_seed)
            masks.append(np.zeros(view.size, bool) if self._is_input(view) else bits == word)
        return masks

    def _modified_inputs(self) -> tuple[str, ...]:
        assert self._inputs is not None
        return tuple(
            buffer.name
            for number, buffer in enumerate(self._plan.inputs)
            if not np.array_equal(self._buffers.raw(number, self._guard), self._inputs[number])
        )

    def _swap_elements(self) -> list[tuple[np.ndarray, int, int]]:
        swaps = []
        for number, buffer in enumerate(self._plan.inputs):
            if buffer.dtype in FLOAT_DTYPES and buffer.size > 1:
                bits = self._buffers.raw(number, self._guard)
                i, j = (int(index) for index in self._generator.integers(0, buffer.size, 2))
                bits[i], bits[j] = bits[j], bits[i]
                swaps.append((bits, i, j))
        return swaps

    def _draw_poison(self, seed: int) -> None:
        dtypes = {buffer.dtype for buffer in self._plan.buffers}
        self._poison = {dtype: poison(dtype, seed) for dtype in sorted(dtypes)}

    def _spread_poison(self) -> None:
        """All over temporaries and outputs: a program that remembers its results there would recompute only changes."""
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.role != "input":
                self._buffers.raw(number, self._guard)[:] = self._poison[buffer.dtype]

    def _seal_outputs(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        seals = []
        for view in self._plan.outputs:
            dtype = self._plan.dtype(view)
            if self._is_input(view) or view.size == 0 or dtype not in FLOAT_DTYPES:
                continue
            bits = self._buffers.raw(view.buffer, self._guard)[view.offset : view.offset + view.size]
            places = self._generator.integers(0, view.size, _SEALED_ELEMENTS)
            bits[places] = self._poison[dtype]
            seals.append((bits, places, self._poison[dtype]))
        return seals

    def _check_seals(self, seals: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
        for bits, places, word in seals:
            if np.any(bits[places] == word):
                self._runner.close()
                message = "a timed replay left elements of an output unwritten that earlier runs wrote"
                raise ProgramFault(Outcome.UNWRITTEN_OUTPUT, Rung.TIMING, message)


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    bits = f"u{one.dtype.itemsize}"
    differ = one.reshape(-1).view(bits) != other.reshape(-1).view(bits)
    if one.dtype.kind in "fV":  # NaN with NaN is no difference, whatever their bits
        differ &= ~(np.isnan(one.reshape(-1).astype(np.float64)) & np.isnan(other.reshape(-1).astype(np.float64)))
    return not differ.any()


def _cpu_budget_s(limits: Limits, threads: int) -> float:
    """A backstop behind the wall deadlines: what a whole session may use."""
    return 60.0 * limits.kernel_s * threads
