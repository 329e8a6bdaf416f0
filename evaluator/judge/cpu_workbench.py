"""The `cpu` device as the ladder uses it: emulator sessions, the JAX oracle, and plain programs kept running."""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluator import _core
from evaluator.devices import cpu
from evaluator.judge.accuracy import Comparison
from evaluator.judge.baseline import plain_text
from evaluator.judge.examination import Examination, examine
from evaluator.judge.expected import Expected
from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.judge.oracle import Oracle
from evaluator.judge.preparation import Preparer
from evaluator.judge.timing import BUCKETS
from evaluator.judge.workbench import Reference
from evaluator.program.identity import sha256
from evaluator.program.plan import Plan
from evaluator.records import Limits, ProgramFault
from evaluator.tasks.task import Task

Trace = Callable[[str, Job], Plan]  # (program, the job that asks) -> its plan on that task and size, screened


class CpuWorkbench:
    """Owns the oracle's process and the running baselines; `close` ends them."""

    widest: float | None = None  # a CPU has other work; the interval is reported whatever its width

    def __init__(self, limits: Limits, trace: Trace):
        self._limits = limits
        self._oracle = Oracle()
        self._baselines = Baselines(lambda *which: self.compile(trace(*which)), limits, BUCKETS)

    def survived(self) -> bool:
        return True  # every session is a process of its own

    def start(self) -> None:
        """Starts the oracle now, so that its imports overlap with other work. Returns at once."""
        self._oracle.start()

    def close(self) -> None:
        self._baselines.close()
        self._oracle.close()

    def replace_lost(self) -> None:
        """Lets go of every process, any of which may have been killed."""
        self.close()

    def prepare(self, plan: Plan, preparer: Preparer) -> cpu.CompiledPlan:
        """As `compile`, which needs none of the preparer's processes."""
        return self.compile(plan)

    def examine(self, found: Findings, exam: Examination) -> None:
        examine(self, found, exam)

    def outputs(self, task: Task, size: str) -> Sequence[tuple[tuple[int, ...], str]]:
        """Shape and dtype of each output of a task."""
        return self._oracle.outputs(task, size)

    def expected(self, task: Task, size: str, case: str, seed: int, *, once: bool = False) -> Expected:
        return self._oracle.expected(task, size, case, seed, once=once)

    def compare(self, seen: np.ndarray, exact: np.ndarray, scale: float = 0.0) -> Comparison:
        with np.errstate(invalid="ignore"):  # poison is a signalling NaN, and stays one of them in float64
            wide = np.ascontiguousarray(exact, dtype=np.float64)
        return _core.compare(np.ascontiguousarray(seen), wide, scale)

    def compile(self, plan: Plan) -> cpu.CompiledPlan:
        """Raises ProgramFault for what the compiler or a launch check finds."""
        return cpu.compile(plan, self._limits)

    def without(self, compiled: cpu.CompiledPlan, step: int) -> cpu.CompiledPlan:
        steps = compiled.plan.steps
        return self.compile(dataclasses.replace(compiled.plan, steps=steps[:step] + steps[step + 1 :]))

    def open(self, compiled: cpu.CompiledPlan) -> cpu.Session:
        return cpu.Session(compiled, self._limits)

    def open_timed(
        self, stack: contextlib.ExitStack, compiled: cpu.CompiledPlan, inputs: Expected
    ) -> list[cpu.Session]:
        return open_sessions(stack, compiled, self._limits, inputs, BUCKETS)

    def floor_us(self, job: Job, inputs: Expected) -> float | None:
        return None

    def references(self, job: Job, inputs: Expected, plain: object) -> Mapping[str, Reference]:
        """The plain program, where the job or `kernels/` has one. RuntimeError where that is itself at fault."""
        text = job.plain if job.plain is not None else plain_text(job.task.id)
        if text is None:
            return {}
        try:
            return {"plain": Reference(sha256(text), self._baselines.sessions(text, job, inputs))}
        except ProgramFault as error:
            self._baselines.close()
            message = f"the plain program of task {job.task.id} does not run: {error.fault.outcome}: {error}"
            raise RuntimeError(message) from error

    def disturbances(self) -> list[str]:
        return []

    def forget_references(self) -> None:
        self._baselines.close()


def open_sessions(
    stack: contextlib.ExitStack, compiled: cpu.CompiledPlan, limits: Limits, inputs: Expected, count: int
) -> list[cpu.Session]:
    """`count` new processes of one program, each run once on `inputs` and alike in what they did; `stack` owns them."""
    sessions = [stack.enter_context(cpu.Session(compiled, limits)) for _ in range(count)]
    for session in sessions:
        session.run(list(inputs.inputs))
    return sessions


class Baselines:
    """Running sessions of plain programs, `buckets` of each; the least recently used program's close beyond `kept`."""

    def __init__(self, prepare: Callable[[str, Job], cpu.CompiledPlan], limits: Limits, buckets: int, kept: int = 2):
        self._prepare = prepare
        self._limits = limits
        self._buckets = buckets
        self._kept = kept
        self._running: collections.OrderedDict[tuple, _Running] = collections.OrderedDict()

    def sessions(self, text: str, job: Job, inputs: Expected) -> list[cpu.Session]:
        """The sessions of a plain program, last run on `inputs`. Raises ProgramFault where it is itself at fault."""
        key = (sha256(text), job.task.source_at(job.size), job.task.arrays_at(job.size))
        if key not in self._running:
            while len(self._running) >= self._kept:
                self._running.popitem(last=False)[1].close()
            self._running[key] = _Running(self._prepare(text, job), self._limits, self._buckets)
        self._running.move_to_end(key)
        return self._running[key].on(inputs)

    def close(self) -> None:
        """Ends all of them; they start again when asked for."""
        while self._running:
            self._running.popitem()[1].close()


class _Running:
    """The sessions of one plain program, and what they ran on last."""

    def __init__(self, compiled: cpu.CompiledPlan, limits: Limits, count: int):
        self._compiled, self._limits, self._count = compiled, limits, count
        self._stack = contextlib.ExitStack()
        self._sessions: list[cpu.Session] = []
        self._inputs: Expected | None = None

    def on(self, inputs: Expected) -> list[cpu.Session]:
        if not self._sessions:
            self._sessions = open_sessions(self._stack, self._compiled, self._limits, inputs, self._count)
        elif self._inputs is not inputs:
            for session in self._sessions:
                session.run(list(inputs.inputs))
        self._inputs = inputs
        return self._sessions

    def close(self) -> None:
        self._stack.close()
