"""A pool of judging processes on this machine. A program may take its worker down, never a result."""

import contextlib
import os
import socket
from collections.abc import Collection, Mapping, Sequence
from multiprocessing import connection
from typing import Any

from evaluator.devices.cuda import machine
from evaluator.judge.child import Child, ending
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.workers import capacity, judging_process
from evaluator.workers.answers import Answer
from evaluator.workers.dispatch import Dispatcher, JudgeOptions
from evaluator.workers.judging_process import MakeJudge
from evaluator.workers.worker import Lost

__all__ = ["Job", "LocalPool"]

_VISIBLE = "CUDA_VISIBLE_DEVICES"


class LocalPool(Dispatcher):
    """`workers` processes, each with a judge of its own made from `judge_options` (arguments of `Judge`).

    On `cuda` each has a GPU of its own, and traces and compiles `compilers` programs while that examines another one;
    0: as many as the cores allow. `deadline_s` is what a job may take that does not say so itself, without its waits
    for others; then its worker is replaced. Start it from a thread that lives as long as the pool: workers end with the
    thread that started them. ValueError: no worker, or more workers than GPUs.
    """

    def __init__(
        self,
        workers: int,
        judge_options: JudgeOptions | None = None,
        deadline_s: float = 300.0,
        *,
        compilers: int = 0,
        make_judge: MakeJudge = Judge,
        start_s: float = 120.0,
    ):
        if workers < 1:
            raise ValueError(f"seen {workers} workers, expected at least 1")
        self._device = str((judge_options or {}).get("device", "cpu"))
        self._compilers = capacity.compilers(compilers, self._device, workers)
        room = capacity.jobs(self._device, self._compilers)
        super().__init__(judge_options, deadline_s, patience_s=start_s, may_grow=False, capacity=room)
        self._environments = _one_gpu_each(workers) if self._device == "cuda" and workers > 1 else [{}] * workers
        self._make_judge = make_judge
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)
        self._hire()

    def wake(self) -> None:
        """Makes a `poll` return that waits in another thread, or the next one."""
        with contextlib.suppress(OSError):  # rung often enough already, or closed
            self._ringer.send(b"\0")

    def close(self) -> None:
        super().close()
        self._bell.close()
        self._ringer.close()

    def _size(self) -> int:
        return len(self._environments)

    def _start(self, place: int) -> "_Process":
        return _Process((self._make_judge, self._device, self._compilers, self._environments[place]))

    def _wait(self, workers: Sequence[Any], timeout_s: float | None) -> Collection[Any]:
        by_pipe = {worker.pipe: worker for worker in workers}
        ready = connection.wait([*by_pipe, self._bell], timeout_s)
        if self._bell in ready:
            self._bell.recv(1 << 16)
        return [by_pipe[pipe] for pipe in ready if pipe is not self._bell]


class _Process:
    """A worker that is a child of this process."""

    def __init__(self, beginning: tuple):
        self._child = Child(judging_process.main)
        self.pipe = self._child.pipe
        with contextlib.suppress(OSError):  # it has died already, which its closed pipe tells whoever waits
            self.pipe.send(beginning)

    def begin(self, number: int, options: JudgeOptions, job: Job) -> None:
        try:
            self.pipe.send((number, options, job))
        except OSError as error:
            raise Lost("the judging process ended before it could take the job") from error

    def receive(self) -> Answer:
        try:
            return self.pipe.recv()
        except (EOFError, OSError) as error:
            raise Lost("the judging process died") from error

    def end(self, *, patience_s: float) -> str:
        return ending(self._child.end(patience_s))


def _one_gpu_each(workers: int) -> list[Mapping[str, str]]:
    """For each worker an environment that shows it one GPU."""
    visible = [entry for entry in os.environ.get(_VISIBLE, "").split(",") if entry]
    driver = machine.driver()
    count = len(driver.gpus) if driver is not None else 0
    if workers > count:
        raise ValueError(
            f"seen {workers} workers for device cuda and {count} GPUs, expected at most one worker for each:"
            " they would time each other's programs"
        )
    return [{_VISIBLE: (visible or [str(i) for i in range(count)])[place]} for place in range(workers)]
