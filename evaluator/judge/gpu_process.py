"""The judge's side of the `cuda` device: the process that has the GPU, which a program may cost, and one in reserve."""

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.judge import cuda_child
from evaluator.judge.child import Child, ending
from evaluator.judge.examination import Examination
from evaluator.judge.findings import Findings
from evaluator.judge.preparation import Preparer
from evaluator.program.plan import Plan
from evaluator.records import Limits, Outcome, ProcessLost, ProgramFault, Rung, killed
from evaluator.tasks.task import Task

START_S = 120.0
_END_S = 3.0  # from the end of its pipe to that of the process, whose context takes its time to go
_POLL_S = 0.01
SILENCE_S = 120.0  # between two signs of life: the child gives one at every case and every sample


class _NoRoom(Exception):
    """The device's memory ran out, through no fault of the program. The process has been ended, to give up its own."""


class GpuProcess:
    """One GPU, for one thread at a time. Its process starts at the first question, and anew after a program broke it.

    Another one stands by that has imported everything and does not touch the GPU before it is needed.
    """

    def __init__(self, limits: Limits, ordinal: int = 0, process_main: Callable = cuda_child.main):
        self._limits, self._ordinal, self._process_main = limits, ordinal, process_main
        self._child: Child | None = None
        self._is_ready = False  # whether the child has said so
        self._reserve: Child | None = None
        self._architecture = 0  # of the GPU; 0: no child has said it yet

    def start(self) -> None:
        """Starts the GPU's process if it does not run, and returns at once."""
        if self._child is None or not self._child.alive:
            self._end_child()
            reserve, self._reserve = self._reserve, None
            if reserve is not None and not reserve.alive:
                reserve.end()
                reserve = None
            self._child = reserve or Child(self._process_main)
            with contextlib.suppress(OSError):  # it has died, which whoever waits for it will see
                self._child.pipe.send((self._limits, self._ordinal))

    def close(self) -> None:
        self._end_child()
        if self._reserve is not None:
            self._reserve.end()
            self._reserve = None

    def replace_lost(self) -> None:
        """Nothing: a process that was lost is replaced where it is missed."""

    def prepare(self, plan: Plan, preparer: Preparer) -> CompiledPlan:
        """A plan for this GPU. ProgramFault for what the compiler or a launch check finds."""
        return preparer.compile(plan, self.architecture)

    @property
    def architecture(self) -> int:
        """90 is sm_90."""
        if not self._architecture:
            self._ready()
        return self._architecture

    def outputs(self, task: Task, size: str) -> Sequence[tuple[tuple[int, ...], str]]:
        """Shape and dtype of each output of a task. RuntimeError where its reference fails."""
        if task.reference == "torch":  # PyTorch has no place in the process that runs programs
            raise RuntimeError(f"task {task.id} is a PyTorch file, a reference on the cpu device alone")
        self._ready()
        try:
            self._send("outputs", task, size)
            _, specs = self._receive(SILENCE_S)
        except (EOFError, TimeoutError) as error:
            self._end_child()  # a late answer would be taken for the next question's
            raise RuntimeError(f"the GPU's process was lost over the reference of task {task.id}") from error
        except _NoRoom as error:
            raise ProcessLost(Rung.TRACE, str(error)) from error
        return specs

    def examine(self, found: Findings, exam: Examination) -> None:
        """As `examination.examine`, in the GPU's process. A process that is lost says what the program did to it."""
        try:
            answer, *payload = self._begin(found, exam)
            while answer == "rung":
                found.current = payload[0]
                answer, *payload = self._receive(SILENCE_S)
        except EOFError as error:
            if self._lost_with() == -signal.SIGKILL:
                raise killed(found.current, "the process that has the GPU") from error
            message = "the process that has the GPU was lost while it ran the program"
            raise ProgramFault(Outcome.CRASHED, found.current, message) from error
        except _NoRoom as error:
            raise ProcessLost(found.current, str(error)) from error
        except TimeoutError as error:
            self._end_child()
            message = f"nothing was heard for {SILENCE_S:g} s of the process that has the GPU"
            raise ProgramFault(Outcome.TIMEOUT, found.current, message) from error
        known, fault, broken = payload
        vars(found).update(vars(known))
        if broken:
            self._end_child()
            self.start()  # while others compile
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
        if not self._is_ready:
            try:
                _, self._architecture = self._receive(START_S)
                self._is_ready = True
            except EOFError as error:
                code = self._lost_with()
                how = "it closed its pipe" if code is None else ending(code)
                raise RuntimeError(f"the process that has the GPU ended before it was ready: {how}") from error
            except TimeoutError as error:
                self._end_child()
                raise RuntimeError(f"the process that has the GPU was not ready after {START_S:g} s") from error
        if self._reserve is None:
            self._reserve = Child(self._process_main)  # now that its start no longer delays the first one's

    def _send(self, *question: Any) -> None:
        assert self._child is not None
        try:
            self._child.pipe.send(question)
        except OSError as error:
            raise EOFError from error

    def _receive(self, patience_s: float) -> tuple:
        """The next message. EOFError, TimeoutError, _NoRoom, or RuntimeError with what went wrong there."""
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
        if message[0] == "no room":
            self._end_child()
            raise _NoRoom(f"the GPU has too little memory for this task: {message[1]}")
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
        self._child, self._is_ready = None, False
        return None if left else code

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
        self._is_ready = False
