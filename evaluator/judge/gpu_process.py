"""The judge's side of the `cuda` device: NVRTC in one confined process, the GPU in another that a program may cost."""

import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from evaluator.devices.cuda import compiled_plan
from evaluator.devices.cuda.compiler import Compiler
from evaluator.judge import cuda_child
from evaluator.judge.child import Child
from evaluator.judge.examination import Examination
from evaluator.judge.findings import Findings
from evaluator.program.plan import Plan
from evaluator.records import Limits, Outcome, ProcessLost, ProgramFault
from evaluator.tasks.task import Task

START_S = 120.0
_END_S = 3.0  # from the end of its pipe to that of the process, whose context takes its time to go
_POLL_S = 0.01
SILENCE_S = 120.0  # between two signs of life: the child gives one at every case and every sample


class GpuProcess:
    """One GPU. Its process starts at the first question, and anew after a program has broken it."""

    def __init__(self, limits: Limits, ordinal: int = 0, process_main: Callable = cuda_child.main):
        self._limits, self._ordinal, self._process_main = limits, ordinal, process_main
        self._compiler: Compiler | None = None
        self._child: Child | None = None
        self._architecture = 0  # 0: the child has not said that it is ready
        self._outputs: dict[tuple, Any] = {}

    def start(self) -> None:
        """Starts the GPU's process if it does not run, and returns at once."""
        if self._child is None or not self._child.alive:
            self._end_child()
            self._child = Child(self._process_main)
            self._child.pipe.send((self._limits, self._ordinal))

    def close(self) -> None:
        self._end_child()
        if self._compiler is not None:
            self._compiler.close()
            self._compiler = None

    def outputs(self, task: Task, size: str) -> Sequence[tuple[tuple[int, ...], str]]:
        """Shape and dtype of each output of a task. RuntimeError where its reference fails."""
        key = (task.source_at(size), task.arrays_at(size))
        if key not in self._outputs:
            self._ready()
            try:
                self._send("outputs", task, size)
                _, self._outputs[key] = self._receive(SILENCE_S)
            except (EOFError, TimeoutError) as error:
                self._end_child()  # a late answer would be taken for the next question's
                raise RuntimeError(f"the GPU's process was lost over the reference of task {task.id}") from error
        return self._outputs[key]

    def compile(self, plan: Plan) -> compiled_plan.CompiledPlan:
        """Raises ProgramFault for what the compiler or a launch check finds."""
        self._ready()
        if self._compiler is None:
            self._compiler = Compiler(self._limits)
        return compiled_plan.compile(plan, self._compiler, self._architecture, self._limits)

    def examine(self, found: Findings, exam: Examination) -> None:
        """As `examination.examine`, in the GPU's process. A process that is lost says what the program did to it."""
        answer, *payload = self._begin(found, exam)
        try:
            while answer == "rung":
                found.current = payload[0]
                answer, *payload = self._receive(SILENCE_S)
        except EOFError as error:
            if self._lost_with() == -signal.SIGKILL:
                raise ProcessLost(found.current, "the process that has the GPU") from error
            message = "the process that has the GPU was lost while it ran the program"
            raise ProgramFault(Outcome.CRASHED, found.current, message) from error
        except TimeoutError as error:
            self._end_child()
            message = f"nothing was heard for {SILENCE_S:g} s of the process that has the GPU"
            raise ProgramFault(Outcome.TIMEOUT, found.current, message) from error
        known, fault, broken = payload
        vars(found).update(vars(known))
        if broken:
            self._end_child()
        if fault is not None:
            raise ProgramFault(fault.outcome, fault.rung, fault.message, fault.line)

    def _begin(self, found: Findings, exam: Examination) -> tuple:
        """The first message of a rung that runs the program.

        Until then the child evaluates the reference: a loss is not the program's, and a new process is asked.
        """
        for attempt in (1, 2):
            self._ready()
            try:
                self._send("examine", found, exam)
                message = self._receive(SILENCE_S)
                while message == ("rung", found.current):  # signs of life
                    message = self._receive(SILENCE_S)
                return message
            except (EOFError, TimeoutError) as error:
                self._end_child()
                if attempt == 2:
                    raise RuntimeError("the GPU's process was lost twice before it came to the program") from error
        raise AssertionError

    def _ready(self) -> None:
        """Waits for the process. RuntimeError where it cannot use the GPU."""
        self.start()
        if self._architecture == 0:
            try:
                _, self._architecture = self._receive(START_S)
            except (EOFError, TimeoutError) as error:
                self._end_child()
                raise RuntimeError(f"the process that has the GPU was not ready after {START_S:g} s") from error

    def _send(self, *question: Any) -> None:
        assert self._child is not None
        try:
            self._child.pipe.send(question)
        except OSError as error:
            raise EOFError from error

    def _receive(self, patience_s: float) -> tuple:
        """The next message. EOFError, TimeoutError, or RuntimeError with what went wrong there."""
        assert self._child is not None
        deadline = time.monotonic() + patience_s
        try:
            if not self._child.pipe.poll(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            message = self._child.pipe.recv()
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise EOFError from error
        if message[0] == "error":
            _, text, broken = message
            if broken:
                self._end_child()
            raise RuntimeError(f"device cuda: {text}")
        return message

    def _lost_with(self) -> int | None:
        """Exit code of a process that has closed its pipe; None where it does not end by itself."""
        assert self._child is not None
        deadline = time.monotonic() + _END_S
        while (left := self._child.alive) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        code = self._child.end()
        self._child, self._architecture = None, 0
        return None if left else code

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
        self._architecture = 0
