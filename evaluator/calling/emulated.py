"""A plan on the CPU emulator, called from any thread: arrays go to a confined process and results come back.

A kernel that fails ends that process, never the caller's; the next call starts another.
"""

import concurrent.futures
import functools
import threading
import weakref
from collections.abc import Sequence

import numpy as np

from evaluator.calling.arguments import results_of
from evaluator.calling.placement import place
from evaluator.devices import cpu, faults, layout
from evaluator.devices.layout import SharedBuffers
from evaluator.devices.runner_process import RunnerProcess, is_fault
from evaluator.program.plan import Plan, View
from evaluator.records import Limits, ProgramFault, Rung

_GUARD = "right"  # where a stray access is seen: past the end
_CPU_S = 7 * 86_400.0  # of a process, all calls together; a deadline of its own holds for each


class EmulatedProgram:
    """One plan, compiled for the host. Its process starts with the first call and takes one call at a time."""

    def __init__(self, plan: Plan, limits: Limits, name: str):
        """Raises ProgramFault for what the compiler or a launch check finds."""
        self.plan, self.results = plan, results_of(plan)
        self._limits, self._name = limits, name
        self._compiled = cpu.compile(plan, limits)
        self._lock = threading.Lock()
        self._runner: RunnerProcess | None = None
        self._ends: weakref.finalize | None = None

    @property
    def bytes(self) -> list[int]:
        """Bytes of every input, then of every output."""
        return list(place(self.plan).array_bytes)

    def run(self, inputs: Sequence[memoryview], results: Sequence[memoryview]) -> None:
        """One call on the bytes of contiguous arrays. RuntimeError that says what the program did wrong."""
        try:
            with self._lock:
                self._run(inputs, results)
        except ProgramFault as error:
            line = f" (line {error.fault.line})" if error.fault.line else ""
            raise RuntimeError(f"{self._name}: {error.fault.outcome}{line}: {error}") from error

    def _run(self, inputs: Sequence[memoryview], results: Sequence[memoryview]) -> None:
        runner = self._started()
        buffers = SharedBuffers(self.plan, runner.memory)
        for number, (given, buffer) in enumerate(zip(inputs, self.plan.inputs, strict=True)):
            if buffer.size:
                target = buffers.raw(number, _GUARD)
                target[:] = np.frombuffer(given, target.dtype)
        try:
            report = runner.run(
                order="forward",
                seed=0,
                guard=_GUARD,
                deadline_s=self._limits.kernel_s,
                rung=Rung.LAUNCH,
                judged=True,
            )
        except BaseException:
            runner.close()  # or its report on this call would be taken for one on the next
            raise
        if is_fault(report):
            runner.close()
            raise faults.fault(report, self.plan, self._compiled.compiled.path, Rung.LAUNCH)
        for result, view in zip(results, self.plan.outputs, strict=True):
            if view.size:
                np.frombuffer(result, np.uint8)[:] = _bytes(buffers, view)

    def _started(self) -> RunnerProcess:
        if self._runner is not None and self._runner.alive:
            return self._runner
        compiled = self._compiled.compiled
        regions = layout.regions(self.plan)
        start = functools.partial(
            RunnerProcess,
            str(compiled.path),
            self._compiled.tape,
            sum(region.region_bytes for region in regions) or layout.mmap.PAGESIZE,
            threads=1,
            static_shared_bytes=compiled.facts.thread_local_bytes,
            cpu_s=_CPU_S,
            layers=self._limits.confinement,
        )
        runner = _starting_thread().submit(start).result()
        if self._ends is not None:
            self._ends.detach()
        self._ends = weakref.finalize(self, runner.close)
        if is_fault(runner.ready):
            runner.close()
            raise faults.fault(runner.ready, self.plan, compiled.path, Rung.LAUNCH)
        self._runner = runner
        return runner


def _bytes(buffers: SharedBuffers, view: View) -> np.ndarray:
    return buffers.array(view, _GUARD).reshape(-1).view(np.uint8)


@functools.cache
def _starting_thread() -> concurrent.futures.ThreadPoolExecutor:
    """A confined process ends with the thread that started it, and a caller's thread may end at any time."""
    return concurrent.futures.ThreadPoolExecutor(1, "emulated-programs")
