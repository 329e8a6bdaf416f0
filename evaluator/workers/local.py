"""A pool of judging processes on this machine. A program may take its worker down, never a result."""

import collections
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import connection
from typing import Any

from evaluator.judge.child import Child
from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.program.identity import sha256
from evaluator.records import Fault, Mode, Outcome, Rung, Verdict
from evaluator.workers import judging_process

__all__ = ["Job", "LocalPool"]

ATTEMPTS = 2  # a job whose worker is lost this often is ours to explain: evaluator_error


@dataclasses.dataclass
class _Ticket:
    job: Job
    losses: int = 0  # workers that were lost while they held it


@dataclasses.dataclass
class _Worker:
    child: Child
    ticket: _Ticket | None = None
    deadline_s: float = 0.0  # on the monotonic clock


class LocalPool:
    """`workers` processes, each with a judge of its own made from `judge_options` (arguments of `Judge`).

    Jobs wait here and go to whichever worker is free. A worker that dies, or holds a job for longer than `deadline_s`,
    is replaced and its job judged again; after the second loss the verdict is `evaluator_error`, or `timeout` where the
    worker lived: a program may be slow in each of its many runs. Start it from a thread
    that lives as long as the pool: workers end with the thread that started them.
    """

    def __init__(
        self,
        workers: int,
        judge_options: Mapping[str, Any] | None = None,
        deadline_s: float = 300.0,
        process_main: Callable[[connection.Connection], None] = judging_process.main,
    ):
        if workers < 1:
            raise ValueError(f"seen {workers} workers, expected at least 1")
        if workers > 1 and (judge_options or {}).get("device") == "cuda":
            raise ValueError(
                f"seen {workers} workers for device cuda, expected 1: they would time each other's programs"
            )
        self._options = dict(judge_options or {})
        self._deadline_s = deadline_s
        self._waiting: collections.deque[_Ticket] = collections.deque()
        self._done: collections.deque[tuple[Job, Verdict]] = collections.deque()
        self._size = workers
        self._process_main = process_main
        self._workers: list[_Worker] = []
        self._hire()

    def __enter__(self) -> "LocalPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def outstanding(self) -> int:
        """Jobs submitted whose verdicts have not been handed out."""
        return len(self._waiting) + len(self._done) + sum(worker.ticket is not None for worker in self._workers)

    def submit(self, job: Job) -> None:
        """Queues a job. Returns at once; ask `completed` for its verdict."""
        self._waiting.append(_Ticket(job))
        self._hire()
        self._assign()

    def completed(self) -> Iterator[tuple[Job, Verdict]]:
        """Jobs and verdicts in the order in which they end, until nothing submitted is outstanding."""
        while self.outstanding:
            self._hire()
            self._assign()
            if not self._done:
                self._collect()
            while self._done:
                yield self._done.popleft()

    def close(self) -> None:
        """Ends the workers; what they held is dropped."""
        for worker in self._workers:
            _end(worker)
        self._workers.clear()
        self._waiting.clear()
        self._done.clear()

    def _hire(self) -> None:
        while len(self._workers) < self._size:
            child = Child(self._process_main)
            child.pipe.send(self._options)
            self._workers.append(_Worker(child))

    def _assign(self) -> None:
        for worker in list(self._workers):
            if not self._waiting:
                return
            if worker.ticket is None:
                worker.ticket, worker.deadline_s = self._waiting.popleft(), time.monotonic() + self._deadline_s
                try:
                    worker.child.pipe.send(worker.ticket.job)
                except OSError:
                    self._lose(worker, "the judging process ended before it could take the job")

    def _collect(self) -> None:
        """Waits for one event: a verdict, a death or a deadline."""
        busy = [worker for worker in self._workers if worker.ticket is not None]
        until_s = min((worker.deadline_s for worker in busy), default=time.monotonic())
        ready = connection.wait([worker.child.pipe for worker in busy], timeout=max(0.0, until_s - time.monotonic()))
        for worker in busy:
            if worker.child.pipe in ready:
                try:
                    verdict = worker.child.pipe.recv()
                except (EOFError, OSError):
                    self._lose(worker, "the judging process died")
                else:
                    self._finish(worker, verdict)
            elif time.monotonic() >= worker.deadline_s:
                self._lose(worker, f"no verdict within {self._deadline_s:.0f} s", Outcome.TIMEOUT)

    def _finish(self, worker: _Worker, verdict: Verdict) -> None:
        assert worker.ticket is not None
        self._done.append((worker.ticket.job, verdict))
        worker.ticket = None

    def _lose(self, worker: _Worker, reason: str, outcome: Outcome = Outcome.EVALUATOR_ERROR) -> None:
        """Replaces a worker and queues its job first, or gives it up with `outcome` after the second loss."""
        ticket = worker.ticket
        assert ticket is not None
        self._workers.remove(worker)
        exit_code = _end(worker)
        self._hire()
        ticket.losses += 1
        if ticket.losses < ATTEMPTS:
            self._waiting.appendleft(ticket)
        else:
            message = f"{reason} (exit code {exit_code}), {ATTEMPTS} times"
            self._done.append((ticket.job, self._lost_verdict(ticket.job, outcome, message)))

    def _lost_verdict(self, job: Job, outcome: Outcome, message: str) -> Verdict:
        found = Findings(
            task=job.task.id,
            size=job.size,
            device=str(self._options.get("device", "cpu")),
            mode=Mode(self._options.get("mode", Mode.QUICK)),
            program_sha256="" if job.completion else sha256(job.text),
        )
        return found.verdict(Fault(outcome, Rung.EXTRACT, message))


def _end(worker: _Worker) -> int:
    """Ends a worker, whose children end with it, and gives its exit code. An idle one leaves by itself."""
    return worker.child.end(patience_s=1.0 if worker.ticket is None else 0.0)
