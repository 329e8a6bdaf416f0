"""A stream over a pool takes in no more than that can judge, and all that there is."""

import itertools

import pytest

from evaluator.judge.job import Job
from evaluator.tasks.task import Array, Task
from evaluator.workers.pool import stream

TASK = Task(id="t", name="t", family="x", source="", sizes={"cpu": (Array("x", (1,)),)})


class Pool:
    """Its workers end a job each whenever one verdict is asked for."""

    in_flight = 6

    def __init__(self):
        self.waiting = []

    @property
    def outstanding(self):
        return len(self.waiting)

    def submit(self, job):
        self.waiting.append(job)

    def completed(self):
        while self.waiting:
            yield self.waiting.pop(0), "verdict"


def job(key):
    return Job(key=key, text="", task=TASK)


def test_a_stream_reads_no_further_than_the_pool_can_judge():
    pool, read = Pool(), []

    def jobs():
        for key in range(1000):
            read.append(key)
            yield job(key)

    for done, _ in enumerate(itertools.islice(stream(pool, jobs()), 50), start=1):
        assert len(read) - done <= pool.in_flight
    assert len(read) == 50 + pool.in_flight  # and no worker is without work


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 100])
def test_a_stream_ends_with_its_jobs(count):
    found = [done.key for done, _ in stream(Pool(), (job(key) for key in range(count)))]
    assert sorted(found) == list(range(count))


def test_an_error_of_the_jobs_iterator_reaches_the_reader():
    def jobs():
        yield job(0)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(stream(Pool(), jobs()))
