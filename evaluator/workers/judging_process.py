"""What runs in one worker: a judge that answers jobs, several at a time, until its pipe closes."""

import contextlib
import dataclasses
import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self

from evaluator.devices import device_model
from evaluator.judge.job import Job
from evaluator.records import Verdict
from evaluator.workers import capacity
from evaluator.workers.answers import Answer, Judged, Paused, Ready


class JudgeLike(Protocol):
    """What a worker needs of `evaluator.judge.ladder.Judge`; tests put scripted ones in its place.

    It is made from the options of a pool, `compilers` and `pauses`, and judges in as many threads as it is called from.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def judge(self, job: Job) -> Verdict: ...


MakeJudge = Callable[..., JudgeLike]


class JobThreads:
    """One judge and a thread for each job that it has; `tell` sends an answer, from any thread.

    A job with other options than the one before is put when no job is left: another judge then takes the place.
    """

    def __init__(self, make: MakeJudge, compilers: int, tell: Callable[[Answer], None]):
        self._make, self._compilers, self._tell = make, compilers, tell
        self._stack = contextlib.ExitStack()
        self._judge: JudgeLike | None = None
        self._options: Mapping[str, Any] = {}
        self._put: queue.SimpleQueue[tuple[JudgeLike, int, Job]] = queue.SimpleQueue()
        self._idle, self._lock = 0, threading.Lock()  # threads without a job
        self._watches: dict[Hashable, _Stopwatch] = {}

    def put(self, number: int, options: Mapping[str, Any], job: Job) -> None:
        """Begins a job and returns at once."""
        if self._judge is None or options != self._options:
            self.close()
            made = self._make(**options, compilers=self._compilers, pauses=self._paused)
            self._judge, self._options = self._stack.enter_context(made), options
        self._watches[number] = _Stopwatch()
        with self._lock:
            hires = self._idle == 0
            self._idle -= not hires
        if hires:  # for good, since the processes that a thread starts end with it
            threading.Thread(target=self._work, daemon=True).start()
        self._put.put((self._judge, number, job))

    def close(self) -> None:
        """Ends the judge, which must be idle."""
        self._judge = None
        self._stack.close()

    def _work(self) -> None:
        try:
            while True:
                judge, number, job = self._put.get()
                verdict = judge.judge(dataclasses.replace(job, key=number))
                del self._watches[number]
                with self._lock:
                    self._idle += 1
                self._tell(Judged(number, verdict))
        except BaseException:  # a judge never raises for a program: this is ours, and the worker's end
            traceback.print_exc()
            os._exit(1)

    def _paused(self, number: Hashable, waits: bool) -> None:
        assert isinstance(number, int)
        self._tell(Paused(number, waits, self._watches[number].switched(runs=not waits)))


def main(pipe: Connection) -> None:
    """Receives (how to make a judge, its device, compilers, environment), and sends `Ready`.

    Then it receives (number, options of the judge, `Job`), and sends `Paused` and `Judged`, until EOFError.
    """
    make, device, compilers, environment = pipe.recv()
    os.environ.update(environment)
    lock = threading.Lock()

    def tell(answer: Answer) -> None:
        with lock, contextlib.suppress(OSError):  # whoever asked has gone, which `recv` tells
            pipe.send(answer)

    tell(Ready(device_model.name(device), capacity.jobs(device, compilers)))
    with contextlib.closing(JobThreads(make, compilers, tell)) as threads:
        while True:
            threads.put(*pipe.recv())


class _Stopwatch:
    """How long a job was worked on."""

    def __init__(self) -> None:
        self._worked_s, self._since_s = 0.0, time.monotonic()

    def switched(self, *, runs: bool) -> float:
        """Stops it, or starts it again; the seconds until now."""
        now_s = time.monotonic()
        if not runs:
            self._worked_s += now_s - self._since_s
        self._since_s = now_s
        return self._worked_s
