"""Jobs from submission to verdict over workers that may be lost: retries, deadlines, workers in place of lost ones.

A job is at every moment in one of three places: waiting, with one worker, or done. That is why it has one verdict.
"""

import abc
import collections
import dataclasses
import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Self

from evaluator.judge.job import Job
from evaluator.records import Outcome, Verdict
from evaluator.workers.answers import Answer, Judged, Paused, Ready
from evaluator.workers.assignment import next_assignment, wanted_model
from evaluator.workers.slot import QueuedJob, Slot
from evaluator.workers.unjudged import unjudged
from evaluator.workers.worker import Lost, Worker

ATTEMPTS = 2  # a job whose worker is lost this often is ours to explain: evaluator_error
REFUSALS = 10  # as is one that finds this many workers dead that were said to be ready
REST_S = 1.0  # before a place is filled again whose worker was lost before it was ready
UNREAD = 1  # verdicts of a worker that are being read while it judges on

JudgeOptions = Mapping[str, Any]  # arguments of `evaluator.judge.ladder.Judge`


class Dispatcher(abc.ABC):
    """Gives each job to a worker with room, about in the order of submission, and again where that worker is lost.

    All jobs of a task go to one model of device, that of the first or the one that a job names, so that what is
    compared comes from one. Those of one workload go to one worker in a row (`assignment`).
    A job that was with others when their worker was lost is judged alone. One whose worker is lost `ATTEMPTS` times
    while it is alone has the verdict `evaluator_error`, or `timeout` where the worker lived: a program may be slow in
    each of its many runs. Leaves say what a worker is.
    """

    def __init__(
        self,
        judge_options: JudgeOptions | None,
        deadline_s: float,
        *,
        patience_s: float,
        may_grow: bool,
        capacity: int = 1,
    ):
        self._options = dict(judge_options or {})
        self._deadline_s = deadline_s
        self._patience_s = patience_s  # how long a job may wait while there is no worker that may take it
        self._may_grow = may_grow  # whether workers on other devices may yet come
        self._capacity = capacity  # of a worker that has not said it yet
        self._numbers = itertools.count()
        self._waiting: collections.deque[QueuedJob] = collections.deque()
        self._done: collections.deque[tuple[Job, Verdict]] = collections.deque()
        self._slots: list[Slot] = []
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
        return len(self._waiting) + len(self._done) + sum(len(slot.held) for slot in self._slots)

    @property
    def capacity(self) -> int:
        """Jobs that all workers together can hold."""
        return sum(slot.capacity for slot in self._slots) or self._capacity

    @property
    def in_flight(self) -> int:
        return self.capacity + UNREAD * max(1, len(self._slots))

    def submit(self, job: Job, judge_options: JudgeOptions | None = None) -> None:
        """Queues a job and returns at once; `judge_options` in place of the pool's own, for this job."""
        job.task.arrays_at(job.size)
        self._waiting.append(QueuedJob(job, self._options if judge_options is None else judge_options))
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
        for slot in list(self._slots):
            self._take_away(slot, at_once=bool(slot.held))
        self._waiting.clear()
        self._done.clear()

    def _step(self, timeout_s: float | None) -> None:
        self._hire()
        self._assign()
        self._hire()  # in the place of those that were found dead
        if not self._done:
            self._collect(timeout_s)
            self._assign()  # no worker is idle while the caller looks at a verdict

    def _hire(self) -> None:
        now_s, filled = time.monotonic(), {slot.place for slot in self._slots}
        for place in range(self._size()):
            if place not in filled and now_s >= self._resting.get(place, 0.0):
                self._slots.append(Slot(place, self._start(place), self._capacity))

    def _assign(self) -> None:
        while (pair := next_assignment(self._slots, self._waiting, self._models)) is not None:
            self._give(*pair)

    def _give(self, slot: Slot, queued: QueuedJob) -> None:
        self._waiting.remove(queued)
        self._models.setdefault(queued.job.task.id, slot.device_name or "")
        given_s = self._deadline_s if queued.job.deadline_s is None else queued.job.deadline_s
        number = next(self._numbers)
        slot.take(number, queued, given_s)
        queued.stranded_s = None
        try:
            slot.worker.begin(number, queued.options, dataclasses.replace(queued.job, key=None))
        except Lost as error:
            del slot.held[number]
            self._refused(slot, queued, str(error))

    def _refused(self, slot: Slot, queued: QueuedJob, reason: str) -> None:
        """A worker that had died before it was given a job is no loss to that job, which it never held."""
        ending = self._lose(slot, reason)
        queued.refusals += 1
        if queued.refusals < REFUSALS:
            self._waiting.appendleft(queued)
        else:
            message = f"{reason} ({ending}), {REFUSALS} times"
            self._give_up(queued, message, Outcome.EVALUATOR_ERROR, slot.device_name or "")

    def _collect(self, timeout_s: float | None) -> None:
        """Waits for one event: an answer, a loss, a deadline."""
        self._strand()
        if self._done:
            return
        ends = [slot.until_s for slot in self._slots if slot.until_s is not None]
        ends += [each.stranded_s + self._patience_s for each in self._waiting if each.stranded_s is not None]
        now_s = time.monotonic()
        ends += [end_s for end_s in self._resting.values() if end_s > now_s]
        left = [max(0.0, end_s - now_s) for end_s in ends] + ([] if timeout_s is None else [timeout_s])
        answered = self._wait([slot.worker for slot in self._slots], min(left, default=None))
        for slot in list(self._slots):
            if slot.worker in answered:
                self._hear(slot)
            elif slot.until_s is not None and time.monotonic() >= slot.until_s:
                self._expire(slot)

    def _hear(self, slot: Slot) -> None:
        try:
            answer: Answer = slot.worker.receive()
        except Lost as error:
            self._lose(slot, str(error))
            return
        match answer:
            case Ready(device_name, capacity):
                slot.device_name, slot.capacity = device_name, capacity
                self._failed_starts = 0
            case Paused(number, waits, worked_s):
                held = slot.held[number]
                held.until_s = None if waits else time.monotonic() + held.given_s - worked_s
            case Judged(number, verdict):
                self._done.append((slot.held.pop(number).queued.job, verdict))

    def _expire(self, slot: Slot) -> None:
        """Ends a worker one of whose jobs has had its time. The others come first again."""
        late = slot.held.pop(slot.latest())
        self._waiting.extendleft(reversed([held.queued for held in slot.held.values()]))
        slot.held.clear()
        ending = self._take_away(slot, at_once=True)
        self._count_loss(late.queued, f"no verdict within {late.given_s:g} s ({ending})", Outcome.TIMEOUT, slot)

    def _lose(self, slot: Slot, reason: str) -> str:
        """Takes a worker that was lost from its place, and says how it ended. Its jobs come first again.

        Where it had several, which of them it was lost over is not known: each is then judged alone.
        """
        queued_jobs = [held.queued for held in slot.held.values()]
        slot.held.clear()
        ending = self._take_away(slot, at_once=bool(queued_jobs))
        if slot.device_name is None:
            self._failed_starts += 1
            self._resting[slot.place] = time.monotonic() + REST_S
            self._why_failed = f"{reason} before it was ready ({ending})"
        if len(queued_jobs) == 1:
            self._count_loss(queued_jobs[0], f"{reason} ({ending})", Outcome.EVALUATOR_ERROR, slot)
        else:
            for queued in reversed(queued_jobs):
                queued.suspect = True
                self._waiting.appendleft(queued)
        return ending

    def _count_loss(self, queued: QueuedJob, reason: str, outcome: Outcome, slot: Slot) -> None:
        """A job that lost its worker comes first again, alone, or is given up with `outcome`."""
        queued.losses, queued.suspect = queued.losses + 1, True
        if queued.losses < ATTEMPTS:
            self._waiting.appendleft(queued)
        else:
            self._give_up(queued, f"{reason}, {ATTEMPTS} times", outcome, slot.device_name or "")

    def _take_away(self, slot: Slot, *, at_once: bool) -> str:
        """Ends a worker and says how it ended; an idle one leaves by itself."""
        self._slots.remove(slot)
        return slot.worker.end(patience_s=0.0 if at_once else 1.0)

    def _strand(self) -> None:
        """Gives up what no worker may take, where that will not change or has lasted too long."""
        now_s = time.monotonic()
        ready_slots = [slot for slot in self._slots if slot.device_name is not None]
        ready = {str(slot.device_name) for slot in ready_slots}
        starting = len(ready_slots) < len(self._slots) or len(self._slots) < self._size()
        complete = not self._may_grow and not starting
        hopeless = self._failed_starts >= ATTEMPTS * max(1, self._size()) and not ready
        for queued in list(self._waiting):
            wanted = wanted_model(queued, self._models)
            if wanted in ready or (wanted is None and ready):
                queued.stranded_s = None
                continue
            queued.stranded_s = now_s if queued.stranded_s is None else queued.stranded_s
            if hopeless or (complete and ready) or now_s - queued.stranded_s >= self._patience_s:
                self._waiting.remove(queued)
                self._give_up(queued, self._why_stranded(wanted, ready), Outcome.EVALUATOR_ERROR, "")
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

    def _give_up(self, queued: QueuedJob, message: str, outcome: Outcome, device_name: str) -> None:
        verdict = unjudged(queued.job, queued.options, message, outcome, device_name)
        self._done.append((queued.job, verdict))
