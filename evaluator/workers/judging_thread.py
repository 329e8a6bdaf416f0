"""The thread of a server that owns its pool, and takes jobs from several learners in turn."""

import collections
import threading
from collections.abc import Callable, Hashable
from typing import Any

from evaluator.judge.job import Job
from evaluator.records import Verdict
from evaluator.workers.local import LocalPool


class JudgingThread(threading.Thread):
    """Judges what is `put`, one job of each learner in turn. `deliver` and `fail` are called from this thread.

    Workers end with the thread that started them, so the pool is made here and lives as long as this thread.
    """

    def __init__(
        self,
        make_pool: Callable[[], LocalPool],
        deliver: Callable[[Hashable, Verdict], None],
        fail: Callable[[BaseException], None],
    ):
        super().__init__(name="judging", daemon=True)
        self._make_pool, self._deliver, self._fail = make_pool, deliver, fail
        self._queues: collections.OrderedDict[Hashable, collections.deque[tuple[Job, dict[str, Any]]]] = (
            collections.OrderedDict()
        )
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._pool: LocalPool | None = None

    def put(self, learner: Hashable, job: Job, options: dict[str, Any]) -> None:
        with self._lock:
            self._queues.setdefault(learner, collections.deque()).append((job, options))
        self._wake()

    def drop(self, learner: Hashable) -> None:
        """Forgets what a learner has waiting; what is being judged for it ends in vain."""
        with self._lock:
            self._queues.pop(learner, None)

    def stop(self) -> None:
        """Ends the pool and waits for that."""
        self._stopping.set()
        self._wake()
        self.join()

    def run(self) -> None:
        try:
            with self._make_pool() as pool:
                self._pool = pool
                while not self._stopping.is_set():
                    self._feed(pool)
                    for job, verdict in pool.poll():
                        self._deliver(job.key, verdict)
        except BaseException as error:
            self._fail(error)

    def _feed(self, pool: LocalPool) -> None:
        """Hands over no more than can be judged at once, so that a learner that goes leaves little behind."""
        while pool.outstanding < pool.capacity:
            with self._lock:
                if not self._queues:
                    return
                learner, queue = self._queues.popitem(last=False)
                job, options = queue.popleft()
                if queue:
                    self._queues[learner] = queue  # at the end: the others come first
            pool.submit(job, options)

    def _wake(self) -> None:
        if self._pool is not None:
            self._pool.wake()
