"""Which worker gets which job: retries, deadlines and devices, whatever the workers are.

A job is at every moment in one of three places: waiting, with one worker, or done. That is why it has one verdict.
"""

import abc
import collections
import dataclasses
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.program.identity import sha256
from evaluator.records import Fault, Mode, Outcome, Rung, Verdict

ATTEMPTS = 2  # a job whose worker is lost this often is ours to explain: evaluator_error
REFUSALS = 10  # as is one that finds this many workers dead that were said to be ready
REST_S = 1.0  # before a place is filled again whose worker was lost before it was ready
IN_FLIGHT_PER_WORKER = 2  # one is judged while the verdict of another is being read

JudgeOptions = Mapping[str, Any]  # arguments of `evaluator.judge.ladder.Judge`


class Lost(Exception):
    """A worker is gone, and with it whatever it was doing."""


class Worker(Protocol):
    """A judge in a process of its own, somewhere. It answers with the model of its device, then once for each job."""

    def begin(self, options: JudgeOptions, job: Job) -> None:
        """Hands over a job, without its key, and returns at once. Lost: it was gone before."""

    def receive(self) -> str | Verdict:
        """The next answer, which is there. Lost: there will be none."""

    def end(self, *, patience_s: float) -> str:
        """Ends it, by force after `patience_s`, and says how it ended."""


@dataclasses.dataclass(eq=False)
class _Ticket:
    job: Job
    options: JudgeOptions
    losses: int = 0  # workers that were lost while they held it
    refusals: int = 0  # workers that were found dead when it came to them
    stranded_s: float | None = None  # since when no worker may take it, on the monotonic clock


@dataclasses.dataclass(eq=False)
class _Post:
    """A worker in its place, and what it holds."""

    place: int
    worker: Worker
    device_name: str | None = None  # None: it is starting
    ticket: _Ticket | None = None
    until_s: float = 0.0  # when its job must have ended, on the monotonic clock
    given_s: float = 0.0  # how long that was in all


class Dispatcher(abc.ABC):
    """Gives each job to a worker that is free, in the order of submission, and again where that worker is lost.

    All jobs of a task go to one model of device, that of the first or the one that a job names, so that what is
    compared comes from one. A job whose worker is lost `ATTEMPTS` times has the verdict `evaluator_error`, or `timeout`
    where the worker lived: a program may be slow in each of its many runs. Leaves say what a worker is.
    """

    def __init__(self, judge_options: JudgeOptions | None, deadline_s: float, *, patience_s: float, may_grow: bool):
        self._options = dict(judge_options or {})
        self._deadline_s = deadline_s
        self._patience_s = patience_s  # how long a job may wait while there is no worker that may take it
        self._may_grow = may_grow  # whether workers on other devices may yet come
        self._waiting: collections.deque[_Ticket] = collections.deque()
        self._done: collections.deque[tuple[Job, Verdict]] = collections.deque()
        self._posts: list[_Post] = []
        self._models: dict[str, str] = {}  # task id -> the model of device that judges it
        self._resting: dict[int, float] = {}  # place -> when it may be filled again, on the monotonic clock
        self._failed_starts = 0  # in a row
        self._why_failed = ""

    @abc.abstractmethod
    def _size(self) -> int:
        """How many workers there should be now."""

    @abc.abstractmethod
    def _start(self, place: int) -> Worker:
        """Starts a worker, the only one with this number, and returns at once."""

    @abc.abstractmethod
    def _wait(self, workers: Sequence[Any], timeout_s: float | None) -> Collection[Any]:
        """Those of `workers` that have an answer or are lost; waits for the first of them, or for what else matters."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def outstanding(self) -> int:
        return len(self._waiting) + len(self._done) + sum(post.ticket is not None for post in self._posts)

    @property
    def in_flight(self) -> int:
        return IN_FLIGHT_PER_WORKER * max(1, len(self._posts))

    def submit(self, job: Job, judge_options: JudgeOptions | None = None) -> None:
        """Queues a job and returns at once; `judge_options` in place of the pool's own, for this job."""
        self._waiting.append(_Ticket(job, self._options if judge_options is None else judge_options))
        self._hire()
        self._assign()

    def completed(self) -> Iterator[tuple[Job, Verdict]]:
        while self.outstanding:
            self._step(None)
            while self._done:
                yield self._done.popleft()

    def poll(self, timeout_s: float | None = None) -> list[tuple[Job, Verdict]]:
        """What has ended; where nothing has, waits for one event (an answer, a loss, a deadline) or `timeout_s`."""
        self._step(timeout_s)
        done = list(self._done)
        self._done.clear()
        return done

    def close(self) -> None:
        for post in self._posts:
            _end(post)
        self._posts.clear()
        self._waiting.clear()
        self._done.clear()

    def _step(self, timeout_s: float | None) -> None:
        self._hire()
        self._assign()
        if not self._done:
            self._collect(timeout_s)

    def _hire(self) -> None:
        now_s, filled = time.monotonic(), {post.place for post in self._posts}
        for place in range(self._size()):
            if place not in filled and now_s >= self._resting.get(place, 0.0):
                self._posts.append(_Post(place, self._start(place)))

    def _assign(self) -> None:
        for post in list(self._posts):
            if post.device_name is None or post.ticket is not None:
                continue
            ticket = next((each for each in self._waiting if self._may_take(post, each)), None)
            if ticket is None:
                continue
            self._waiting.remove(ticket)
            self._models.setdefault(ticket.job.task.id, post.device_name)
            given_s = self._deadline_s if ticket.job.deadline_s is None else ticket.job.deadline_s
            post.ticket, post.given_s, post.until_s = ticket, given_s, time.monotonic() + given_s
            ticket.stranded_s = None
            try:
                post.worker.begin(ticket.options, dataclasses.replace(ticket.job, key=None))
            except Lost as error:
                self._refused(post, ticket, str(error))

    def _refused(self, post: _Post, ticket: _Ticket, reason: str) -> None:
        """A worker that had died while it was idle is no loss to the job, which it never held."""
        self._posts.remove(post)
        ending = _end(post)
        ticket.refusals += 1
        if ticket.refusals < REFUSALS:
            self._waiting.appendleft(ticket)
        else:
            message = f"{reason} ({ending}), {REFUSALS} times"
            self._give_up(ticket, message, Outcome.EVALUATOR_ERROR, post.device_name or "")

    def _may_take(self, post: _Post, ticket: _Ticket) -> bool:
        wanted = self._wanted_model(ticket)
        return wanted is None or wanted == post.device_name

    def _wanted_model(self, ticket: _Ticket) -> str | None:
        return ticket.job.device_name or self._models.get(ticket.job.task.id)

    def _collect(self, timeout_s: float | None) -> None:
        """Waits for one event: an answer, a loss, a deadline."""
        self._strand()
        if self._done:
            return
        ends = [post.until_s for post in self._posts if post.ticket is not None]
        ends += [each.stranded_s + self._patience_s for each in self._waiting if each.stranded_s is not None]
        now_s = time.monotonic()
        ends += [end_s for end_s in self._resting.values() if end_s > now_s]
        left = [max(0.0, end_s - now_s) for end_s in ends] + ([] if timeout_s is None else [timeout_s])
        answered = self._wait([post.worker for post in self._posts], min(left, default=None))
        for post in list(self._posts):
            if post.worker in answered:
                self._hear(post)
            elif post.ticket is not None and time.monotonic() >= post.until_s:
                self._lose(post, f"no verdict within {post.given_s:g} s", Outcome.TIMEOUT)

    def _hear(self, post: _Post) -> None:
        try:
            answer = post.worker.receive()
        except Lost as error:
            self._lose(post, str(error))
            return
        if isinstance(answer, str):
            post.device_name = answer
            self._failed_starts = 0
        else:
            assert post.ticket is not None
            self._done.append((post.ticket.job, answer))
            post.ticket = None

    def _lose(self, post: _Post, reason: str, outcome: Outcome = Outcome.EVALUATOR_ERROR) -> None:
        """Takes a worker from its place; its job comes first again, or is given up with `outcome`."""
        self._posts.remove(post)
        ticket, ending = post.ticket, _end(post)
        if ticket is None:
            if post.device_name is None:
                self._failed_starts += 1
                self._resting[post.place] = time.monotonic() + REST_S
                self._why_failed = f"{reason} before it was ready ({ending})"
            return
        ticket.losses += 1
        if ticket.losses < ATTEMPTS:
            self._waiting.appendleft(ticket)
        else:
            self._give_up(ticket, f"{reason} ({ending}), {ATTEMPTS} times", outcome, post.device_name or "")

    def _strand(self) -> None:
        """Gives up what no worker may take, where that will not change or has lasted too long."""
        now_s = time.monotonic()
        ready_posts = [post for post in self._posts if post.device_name is not None]
        ready = {str(post.device_name) for post in ready_posts}
        starting = len(ready_posts) < len(self._posts) or len(self._posts) < self._size()
        complete = not self._may_grow and not starting
        hopeless = self._failed_starts >= ATTEMPTS * max(1, self._size()) and not ready
        for ticket in list(self._waiting):
            wanted = self._wanted_model(ticket)
            if wanted in ready or (wanted is None and ready):
                ticket.stranded_s = None
                continue
            ticket.stranded_s = now_s if ticket.stranded_s is None else ticket.stranded_s
            if hopeless or (complete and ready) or now_s - ticket.stranded_s >= self._patience_s:
                self._waiting.remove(ticket)
                self._give_up(ticket, self._why_stranded(wanted, ready), Outcome.EVALUATOR_ERROR, "")
        if hopeless:
            self._failed_starts = 0  # who asks again is tried again

    def _why_stranded(self, wanted: str | None, ready: Collection[str]) -> str:
        if not ready:
            return self._why_failed or f"no worker was ready within {self._patience_s:g} s"
        here = ", ".join(sorted(ready))
        return (
            f"the programs of this task are judged on {wanted}, whose figures compare with no other's, and this pool"
            f" has {here}: judge where there is a {wanted}, or begin anew"
        )

    def _give_up(self, ticket: _Ticket, message: str, outcome: Outcome, device_name: str) -> None:
        job = ticket.job
        found = Findings(
            task=job.task.id,
            size=job.size,
            device=str(ticket.options.get("device", "cpu")),
            mode=Mode(ticket.options.get("mode", Mode.QUICK)),
            device_name=device_name,
            program_sha256="" if job.completion else sha256(job.text),
        )
        self._done.append((job, found.verdict(Fault(outcome, Rung.EXTRACT, message))))


def _end(post: _Post) -> str:
    """Ends a worker; an idle one leaves by itself."""
    return post.worker.end(patience_s=1.0 if post.ticket is None else 0.0)
