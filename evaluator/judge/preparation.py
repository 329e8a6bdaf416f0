"""Tracing and compiling: what is done with a program before it needs its device, for several programs at once."""

import contextlib
from collections.abc import Iterator

from evaluator.devices.cuda import compiled_plan
from evaluator.devices.cuda.compiler import Compiler
from evaluator.judge.turns import Pause, Turns
from evaluator.program.plan import Plan
from evaluator.program.trace import Tracer
from evaluator.records import Limits
from evaluator.tasks.task import Task


class Preparer:
    """A tracer and an NVRTC, each in a confined process of its own that waits for the next program."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._tracer: Tracer | None = None
        self._compiler: Compiler | None = None

    def close(self) -> None:
        """Ends both processes; the next program starts them anew."""
        for part in (self._tracer, self._compiler):
            if part is not None:
                part.close()
        self._tracer = self._compiler = None

    def trace(self, text: str, task: Task, size: str) -> Plan:
        """The plan of a screened program, whose outputs are not looked at. ProgramFault: as of `Tracer.trace`."""
        if self._tracer is None:
            self._tracer = Tracer(self._limits)
        arrays = task.arrays_at(size)
        inputs = [array for array in arrays if not array.parameter]
        parameters = [array for array in arrays if array.parameter]
        return self._tracer.trace(text, inputs, None, parameters)

    def compile(self, plan: Plan, architecture: int) -> compiled_plan.CompiledPlan:
        """A plan for a GPU of sm_<architecture>. ProgramFault for what the compiler or a launch check finds."""
        if self._compiler is None:
            self._compiler = Compiler(self._limits)
        return compiled_plan.compile(plan, self._compiler, architecture, self._limits)


class Preparers:
    """At most `count` of them, made when they are needed. Threads that use them must live as long as they do."""

    def __init__(self, limits: Limits, count: int):
        self._limits = limits
        self._turns = Turns(count)
        self._idle: list[Preparer] = []

    def close(self) -> None:
        """Ends the processes of those that nobody uses now."""
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def tracing(self, pause: Pause | None = None) -> Iterator[Preparer]:
        """One of them for a trace, which is short and may save a compilation: it goes before those."""
        with self._turns.taken("trace", pause, first=True), self._borrowed() as preparer:
            yield preparer

    @contextlib.contextmanager
    def compiling(self, plan: Plan, pause: Pause | None = None) -> Iterator[Preparer]:
        """One of them, while no other compiles the same modules: these are in the disk cache by the time it ends."""
        with self._turns.taken(plan.modules, pause, alone=True), self._borrowed() as preparer:
            yield preparer

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[Preparer]:
        preparer = self._idle.pop() if self._idle else Preparer(self._limits)
        try:
            yield preparer
        finally:
            self._idle.append(preparer)
