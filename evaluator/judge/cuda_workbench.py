"""The `cuda` device as the ladder uses it, in the process that has the GPU: sessions, the float64 oracle, baselines.

Needs CuPy. A CUDA context that a program has broken is of no further use; the process then ends (`cuda_child`).
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import cupy as cp

from evaluator import _core
from evaluator.devices.cuda import comparison, faults, peaks
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.devices.cuda.draws import CupySource, moved
from evaluator.devices.cuda.monitor import monitor
from evaluator.devices.cuda.recorded import Recorded
from evaluator.devices.cuda.room import with_room
from evaluator.devices.cuda.session import Session
from evaluator.judge.accuracy import Array, Comparison
from evaluator.judge.cases import inputs_for
from evaluator.judge.expected import Expected, evaluate, exact_values
from evaluator.judge.job import Job
from evaluator.judge.kept_cases import KeptCases, Key, with_arrays
from evaluator.judge.timing import BUCKETS
from evaluator.judge.workbench import Reference
from evaluator.nn import cupy_nn
from evaluator.nn.run import compile_forward, run
from evaluator.program.identity import sha256
from evaluator.program.plan import Launch
from evaluator.records import Limits, ProgramFault
from evaluator.tasks.task import Task

_OURS_S = 60.0  # a reference that takes longer is a fault of ours


class CudaWorkbench:
    """One GPU of this process."""

    widest: float | None = 0.05  # several times what a program against itself should show

    def __init__(self, limits: Limits, ordinal: int = 0):
        self._limits = limits
        self.device = _core.CudaDevice(ordinal)
        cp.cuda.Device(ordinal).use()
        cp.cuda.Stream.from_external(self.device).use()
        self.timer = _core.CudaTimer(self.device)
        self.beat: Callable[[], None] = lambda: None  # called often: a sign of life for whoever waits
        self._kept = KeptCases(int(limits.gpu_share * self.device.memory[1]))
        cp.get_default_memory_pool().set_limit(fraction=limits.gpu_share)
        self._monitor = monitor(cp.cuda.Device(ordinal).pci_bus_id)
        self._expected_processes = 1 if limits.gpu_share == 1 else 2  # a learner has the rest of the memory
        self._references: tuple[tuple, Expected, Mapping[str, Reference]] | None = None

    def outputs(self, task: Task, size: str) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Shape and dtype of each output of a task, from one run of its reference."""

        def call() -> tuple[Array, ...]:
            return run(task.source_at(size), cupy_nn, inputs_for(task, size, "plain", 0, CupySource()))

        return tuple((tuple(x.shape), x.dtype.name) for x in with_room(call, self.make_room))

    def expected(self, task: Task, size: str, case: str, seed: int, *, once: bool = False) -> Expected:
        self.beat()
        key = (task.source_at(size), task.arrays_at(size), task.precision, case, seed)
        found = self._kept.get(key)
        if found is None:
            found = with_room(lambda: self._evaluate(key, task, size), self.make_room)
            if not once:
                self._kept.keep(key, found)
        return found

    def _evaluate(self, key: Key, task: Task, size: str) -> Expected:
        source, _, precision, case, seed = key

        def inputs_at(size: str) -> list[Array]:
            return inputs_for(task, size, case, seed, CupySource())

        def forward(arrays: Sequence[Array]) -> Sequence[Array]:
            return run(source, cupy_nn, arrays)

        inputs, known = inputs_at(size), self._kept.figures(key)
        if known is not None:  # the arrays alone have to be made anew
            return with_arrays(known, inputs, exact_values(inputs, forward), comparison.digest)
        return evaluate(
            inputs,
            forward,
            self.compare,
            integral=case == "integers",
            coarse=precision != "fp32",
            smaller=lambda: inputs_at(_smallest_like(task, size)),
            move=moved,
        )

    def compare(self, seen: Array, exact: Array, scale: float = 0.0) -> Comparison:
        return comparison.compare(seen, exact, scale)

    def survived(self) -> bool:
        return faults.survived(self.device)

    def open(self, compiled: CompiledPlan) -> Session:
        self.beat()
        return Session(self.device, self.timer, compiled, self._limits, self.make_room, lambda: self.beat())

    def without(self, compiled: CompiledPlan, step: int) -> CompiledPlan:
        plan, arguments = compiled.plan, list(compiled.arguments)
        if isinstance(plan.steps[step], Launch):
            arguments.pop(sum(isinstance(each, Launch) for each in plan.steps[:step]))
        left = dataclasses.replace(plan, steps=plan.steps[:step] + plan.steps[step + 1 :])
        return dataclasses.replace(compiled, plan=left, arguments=tuple(arguments))

    def open_timed(self, stack: contextlib.ExitStack, compiled: CompiledPlan, inputs: Expected) -> Sequence[Session]:
        """One session stands in every bucket: all are timed in one context, so nothing differs by process."""
        session = stack.enter_context(self.open(compiled))
        session.run(inputs.inputs)
        return [session] * BUCKETS

    def references(self, job: Job, inputs: Expected, plain: CompiledPlan | None) -> Mapping[str, Reference]:
        """`eager`: the reference called step by step; `graph`: the same recorded once and replayed.

        Where the job brings a baseline of its own, that alone.
        """
        if plain is not None:
            return {"plain": Reference(sha256(job.plain or ""), [self._plain_session(plain, inputs)] * BUCKETS)}
        key = (job.task.source_at(job.size), job.task.arrays_at(job.size))
        if self._references is None or self._references[0] != key or self._references[1] is not inputs:
            self._references = None  # its memory first
            self._references = (key, inputs, with_room(lambda: self._eager_and_graph(key[0], inputs), self.make_room))
        return self._references[2]

    def _eager_and_graph(self, source: str, inputs: Expected) -> Mapping[str, Reference]:
        forward, operands = compile_forward(source), [cupy_nn.operand(x) for x in inputs.inputs]
        eager = _Eager(self, lambda: forward(cupy_nn, *operands))
        graph = _Recorded(self, lambda: forward(cupy_nn, *operands))
        return {"eager": Reference("eager", [eager] * BUCKETS), "graph": Reference("graph", [graph] * BUCKETS)}

    def _plain_session(self, plain: CompiledPlan, inputs: Expected) -> "_Plain":
        try:
            session = self.open(plain)
            session.run(inputs.inputs)
        except ProgramFault as error:  # not the candidate's
            raise RuntimeError(f"the baseline program does not run: {error.fault.outcome}: {error}") from error
        return _Plain(self, session)

    def disturbances(self) -> list[str]:
        return [] if self._monitor is None else self._monitor.read().disturbances(self._expected_processes)

    def forget_references(self) -> None:
        self._references = None

    def floor_us(self, job: Job, inputs: Expected) -> float | None:
        """Bytes of outputs, and of the inputs they depend on, less what the L2 cache holds, at the peak bandwidth."""
        peak = peaks.bytes_per_s(self.device)
        if peak is None:
            return None
        written = sum(x.size * cp.dtype(a.dtype).itemsize for x, a in zip(inputs.exact, inputs.accuracies, strict=True))
        read = 0 if job.task.degenerate_at(job.size) else sum(x.nbytes for x in inputs.inputs)
        return max(0.0, 1e6 * (written + read - self.device.l2_bytes) / peak)

    def tidy(self) -> None:
        """Gives back to the device what the last program took, and what the next one will not ask for again."""
        if self._references and not self._kept.holds(self._references[1]):
            self.forget_references()
        self._kept.next_program()
        cp.get_default_memory_pool().free_all_blocks()

    def make_room(self) -> None:
        """Gives back everything that can be made anew."""
        self._kept.clear()
        self.forget_references()
        cp.get_default_memory_pool().free_all_blocks()

    def memory_in_use(self) -> str:
        """Who has the device's memory, for a message that it ran out."""
        pool, (free, total) = cp.get_default_memory_pool(), self.device.memory
        parts = f"{free / 1e9:.1f} are free, {pool.used_bytes() / 1e9:.1f} in use by the judge's pool"
        kept = f"{pool.free_bytes() / 1e9:.1f} kept by it"
        return f"Of the device's {total / 1e9:.1f} GB {parts}, {kept}; the rest is the program's, or another process's."


def _smallest_like(task: Task, size: str) -> str:
    """The size with the fewest elements among those at which the reference is the one of `size`."""
    alike = [other for other in task.sizes if task.source_at(other) == task.source_at(size)]
    return min(alike, key=lambda other: sum(math.prod(array.shape) for array in task.arrays_at(other)))


class _Plain:
    """A job's own baseline, each of whose samples is a sign of life."""

    def __init__(self, bench: CudaWorkbench, session: Session):
        self._bench, self._session = bench, session

    def time(self, replays: int) -> float:
        self._bench.beat()
        return self._session.time(replays)


class _Timed:
    """A reference that is timed between events."""

    def __init__(self, bench: CudaWorkbench, queue: Callable[[], object]):
        self._bench, self._queue = bench, queue

    def time(self, replays: int) -> float:
        self._bench.beat()
        for _ in range(replays):
            self._bench.timer.start()
            self._queue()
            self._bench.timer.stop()
        return sum(self._bench.timer.collect(_OURS_S)) / replays


class _Eager(_Timed):
    """The reference, called step by step."""

    def __init__(self, bench: CudaWorkbench, call: Callable[[], object]):
        super().__init__(bench, call)
        call()
        bench.device.wait(_OURS_S)


class _Recorded(_Timed):
    """The reference, recorded as a graph."""

    def __init__(self, bench: CudaWorkbench, call: Callable[[], object]):
        self._recorded = Recorded(bench.device, call, _OURS_S)
        super().__init__(bench, self._recorded.graph.launch)
