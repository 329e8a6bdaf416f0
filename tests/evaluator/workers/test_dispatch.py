"""Jobs from submission to verdict, with workers that are plain objects in this process: no clocks, no processes."""

import dataclasses
import random
import time

import pytest

from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.records import Mode, Outcome
from evaluator.tasks.task import Array, Task
from evaluator.workers import dispatch
from evaluator.workers.answers import Judged, Paused, Ready
from evaluator.workers.dispatch import ATTEMPTS, REFUSALS, Dispatcher
from evaluator.workers.slot import QueuedJob
from evaluator.workers.worker import Lost


def task(name="t"):
    return Task(id=name, name=name, family="x", source="", sizes={"cpu": (Array("x", (1,)),)})


def job(key, text="ok", task_id="t", **options):
    """A job that can be told by its `plain` where its key does not come along."""
    return Job(key=key, text=text, task=task(task_id), plain=str(key), **options)


class Script:
    """A worker that obeys its job's text: `die` loses it, `hang` answers nothing. Starts on `device_name`."""

    def __init__(self, device_name, log, capacity=1):
        self.device_name, self.log, self.capacity = device_name, log, capacity
        self.dead = device_name is None  # lost before it is ready
        self.answers = [] if self.dead else [Ready(device_name, capacity)]
        self.ended = False
        self.held = {}  # number -> options

    def begin(self, number, options, job):
        if self.dead:
            raise Lost("found dead")
        self.held[number] = options
        assert len(self.held) <= self.capacity
        assert all(each == options for each in self.held.values())  # one judge has all of them
        self.log.append(job.plain)
        assert job.key is None  # it is the caller's, and may be anything
        if job.text == "hang":
            return
        self.answers.append(Lost("died over it") if job.text == "die" else Judged(number, self.verdict(options, job)))

    def verdict(self, options, job):
        mode = Mode(options.get("mode", "quick"))
        found = Findings(task=job.task.id, size=job.size, device="cpu", mode=mode, device_name=self.device_name)
        return found.verdict(None)

    def receive(self):
        if not self.answers:
            raise Lost("died")
        answer = self.answers.pop(0)
        if isinstance(answer, Lost):
            raise answer
        if isinstance(answer, Judged):
            del self.held[answer.number]
        return answer

    def end(self, *, patience_s):
        assert not self.ended, "ended twice"
        self.ended = True
        return "over"


class Scripted(Dispatcher):
    """Workers on the devices of a list, one for each place; `choose` says which of those with an answer are heard."""

    def __init__(self, devices, choose=lambda ready: ready[:1], **settings):
        super().__init__({}, settings.pop("deadline_s", 60.0), patience_s=settings.pop("patience_s", 60.0), **settings)
        self.devices, self.choose, self.each = devices, choose, settings.get("capacity", 1)
        self.log, self.started = [], []

    def _size(self):
        return len(self.devices)

    def _start(self, place):
        self.started.append(Script(self.devices[place], self.log, self.each))
        return self.started[-1]

    def _wait(self, workers, timeout_s):
        ready = [worker for worker in workers if worker.answers or worker.dead]
        assert ready or timeout_s is not None, "would wait for ever"
        return self.choose(ready)


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    monkeypatch.setattr(dispatch, "REST_S", 0.0)


def pool_of(*devices, **settings):
    settings.setdefault("may_grow", False)
    return Scripted(list(devices), **settings)


def results(pool):
    found = list(pool.completed())
    assert len({done.key for done, _ in found}) == len(found), "a job with two verdicts"
    return {done.key: verdict for done, verdict in found}


def test_a_size_that_the_task_has_not_is_refused_and_costs_no_worker():
    pool = pool_of("A")
    with pytest.raises(KeyError, match="no size 'huge'; it has "):
        pool.submit(dataclasses.replace(job(0), size="huge"))
    pool.submit(job(1))
    assert list(results(pool)) == [1]


def test_keys_are_never_compared():
    class Key:
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise AssertionError("compared")

    pool = pool_of("H200", "L4", choose=lambda ready: ready)
    models = ["H200", "H200", "H200", "L4"]  # the last one is taken from behind others that wait
    for number, model in enumerate(models):
        pool.submit(job(Key(), task_id=f"t{number}", device_name=model))
    assert sorted(verdict.device_name for _, verdict in pool.completed()) == models


def test_a_job_loses_a_worker_at_most_twice():
    pool = pool_of("A", "A")
    pool.submit(job("deadly", "die"))
    pool.submit(job("next"))
    found = results(pool)
    assert found["deadly"].outcome is Outcome.EVALUATOR_ERROR
    assert found["deadly"].message == "died over it (over), 2 times"
    assert found["next"].ok
    assert pool.log.count("deadly") == ATTEMPTS


def test_a_job_that_lost_its_worker_comes_before_those_that_wait():
    pool = pool_of("A")
    for key, text in ((0, "die"), (1, "ok"), (2, "ok")):
        pool.submit(job(key, text))
    results(pool)
    assert pool.log == ["0", "0", "1", "2"]


def test_a_worker_found_dead_is_no_loss_to_the_job():
    pool = pool_of("A")
    assert pool.poll() == []
    pool.started[0].dead = True
    pool.submit(job("lucky", "die"))
    assert results(pool)["lucky"].message.endswith("2 times")
    assert pool.log == ["lucky"] * ATTEMPTS


def test_a_worker_found_dead_is_replaced_before_the_pool_waits_for_anything():
    pool = pool_of("A")
    assert pool.poll() == []
    pool.started[0].dead = True
    pool._waiting.append(QueuedJob(job("waiting"), {}))
    pool.poll(0.0)
    assert len(pool.started) == 2
    assert results(pool)["waiting"].ok


def test_workers_that_are_always_found_dead_end_in_a_verdict():
    pool = pool_of("A")
    pool.choose = lambda ready: [_killed(worker) for worker in ready]
    pool.submit(job("unlucky"))
    assert results(pool)["unlucky"].message == f"found dead (over), {REFUSALS} times"


def _killed(worker):
    worker.dead = True  # once it has introduced itself
    return worker


def test_workers_that_never_get_ready_end_in_a_verdict_and_later_jobs_try_again():
    pool = pool_of(None, None)
    pool.submit(job(0))
    assert "before it was ready" in results(pool)[0].message
    pool.devices = ["A", "A"]
    pool.submit(job(1))
    assert results(pool)[1].ok


def test_a_place_whose_worker_never_gets_ready_is_not_filled_again_and_again(monkeypatch):
    monkeypatch.setattr(dispatch, "REST_S", 1e6)
    pool = pool_of("A", None)
    for key in range(50):
        pool.submit(job(key))
    assert all(verdict.ok for verdict in results(pool).values())
    assert [worker.device_name for worker in pool.started] == ["A", None]


@pytest.mark.parametrize("own_s", [None, 0.0])
def test_a_job_may_have_a_deadline_of_its_own(own_s):
    pool = pool_of("A", deadline_s=0.0 if own_s is None else 1e6)
    pool.submit(job("endless", "hang", deadline_s=own_s))
    verdict = results(pool)["endless"]
    assert verdict.outcome is Outcome.TIMEOUT
    assert "no verdict within 0 s" in verdict.message
    assert sum(worker.ended for worker in pool.started) == ATTEMPTS


def test_all_programs_of_a_task_are_judged_on_one_model():
    pool = pool_of("H200", "L4", "L4", "H200", choose=lambda ready: ready)  # four places for three tasks in turn
    for key in range(60):
        pool.submit(job(key, task_id=f"t{key % 3}"))
    found = results(pool)
    for number in range(3):
        assert len({found[key].device_name for key in range(number, 60, 3)}) == 1
    assert {verdict.device_name for verdict in found.values()} == {"H200", "L4"}  # tasks are spread


def test_a_busy_model_does_not_hold_up_tasks_of_another():
    pool = pool_of("H200", "L4")
    pool.submit(job("first", "hang", task_id="slow", device_name="H200", deadline_s=1e6))
    pool.submit(job("second", task_id="slow", device_name="H200"))
    pool.submit(job("other", task_id="quick"))
    while not (done := pool.poll()):
        pass
    assert [each.key for each, _ in done] == ["other"]


def test_a_model_that_no_worker_has_is_said_at_once():
    pool = pool_of("L4")
    pool.submit(job("elsewhere", device_name="H200"))
    verdict = results(pool)["elsewhere"]
    assert verdict.outcome is Outcome.EVALUATOR_ERROR
    assert "are judged on H200, whose figures compare with no other's, and this pool has L4" in verdict.message
    assert pool.log == []


def test_a_model_whose_worker_is_being_replaced_is_waited_for():
    pool = pool_of("H200", "L4", choose=lambda ready: ready)
    assert pool.poll() == []
    pool.started[1].dead = True
    pool.submit(job("lucky", device_name="L4"))
    assert results(pool)["lucky"].device_name == "L4"
    assert [worker.device_name for worker in pool.started] == ["H200", "L4", "L4"]


def test_a_pool_that_may_grow_waits_for_the_model():
    pool = pool_of("L4", may_grow=True, patience_s=1e6)
    pool.submit(job("elsewhere", device_name="H200"))
    assert pool.poll() == []
    pool.choose = lambda ready: ready
    pool.devices.append("H200")
    assert results(pool)["elsewhere"].device_name == "H200"


def test_a_pool_that_may_grow_waits_no_longer_than_its_patience():
    pool = pool_of("L4", may_grow=True, patience_s=0.0)
    assert pool.poll() == []  # the worker is ready
    pool.submit(job("elsewhere", device_name="H200"))
    assert "this pool has L4" in results(pool)["elsewhere"].message


def test_a_job_can_bring_options_for_its_judge():
    pool = pool_of("A")
    pool.submit(job(0), {"mode": "verify"})
    pool.submit(job(1))
    found = results(pool)
    assert (found[0].mode, found[1].mode) == (Mode.VERIFY, Mode.QUICK)


def test_nothing_is_kept_after_close():
    pool = pool_of("A", "A")
    for key in range(5):
        pool.submit(job(key))
    pool.close()
    assert pool.outstanding == 0
    assert all(worker.ended for worker in pool.started)
    assert list(pool.completed()) == []


@pytest.mark.parametrize("capacity", [1, 4])
@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_lost_every_job_has_one_verdict(seed, capacity):
    """Workers die over jobs, while idle, before they are ready; answers are heard in any order."""
    rng = random.Random(seed)
    # The first two places keep their models, so that there is one for every task.
    devices = ["A", "B", *rng.choices(["A", "B"], k=rng.randint(1, 4))]
    pool = pool_of(*devices, may_grow=True, patience_s=1e6, capacity=capacity)

    def choose(ready):
        for worker in pool.started:
            if not worker.ended and rng.random() < 0.05:
                worker.dead, worker.answers = True, []
                ready = [*ready, worker] if worker not in ready else ready
        if rng.random() < 0.02:
            pool.devices[rng.randrange(2, len(pool.devices))] = rng.choice("AB")
        return rng.sample(ready, rng.randint(1, len(ready)))

    pool.choose = choose
    texts = {key: "die" if rng.random() < 0.1 else "ok" for key in range(50)}
    for key, text in texts.items():
        pool.submit(job(key, text, task_id=f"t{rng.randrange(4)}"))
    found = results(pool)
    assert found.keys() == texts.keys()
    assert not any(found[key].ok for key, text in texts.items() if text == "die")
    per_task = {}
    for verdict in found.values():
        if verdict.ok:
            per_task.setdefault(verdict.task, set()).add(verdict.device_name)
    assert all(len(models) == 1 for models in per_task.values())
    pool.close()
    assert all(worker.ended for worker in pool.started)


def ended(pool, count):
    found = {}
    while len(found) < count:
        found |= {done.key: verdict for done, verdict in pool.poll()}
    return found


def test_a_worker_gets_as_many_jobs_as_it_can_hold():
    pool = pool_of("A", capacity=3)
    for key in range(5):
        pool.submit(job(key, "hang"))
    pool.poll(0.0)
    assert pool.log == ["0", "1", "2"]
    assert (pool.capacity, pool.in_flight, pool.outstanding) == (3, 4, 5)


def test_of_several_jobs_of_a_lost_worker_each_is_judged_alone_and_the_deadly_one_is_found():
    pool = pool_of("A", capacity=4)
    for key in range(4):
        pool.submit(job(key, "die" if key == 2 else "ok"))
    for key in range(4, 8):
        pool.submit(job(key))
    pool.poll(0.0)
    assert pool.log == ["0", "1", "2", "3"]
    pool.started[0].answers.clear()  # it is lost before it has said anything
    pool.started[0].dead = True
    found = results(pool)
    assert found[2].outcome is Outcome.EVALUATOR_ERROR
    assert all(verdict.ok for key, verdict in found.items() if key != 2)
    assert pool.log[4:] == ["0", "1", "2", "2", "3", "4", "5", "6", "7"]


def test_jobs_beside_one_that_took_too_long_are_judged_again_at_no_loss():
    pool = pool_of("A", capacity=3)
    pool.submit(job("endless", "hang", deadline_s=0.0))
    pool.submit(job("beside", "hang", deadline_s=1e6))
    while len(pool.started) < 2:
        pool.poll(0.0)
    assert pool._waiting[-1].job.key == "beside"
    assert (pool._waiting[-1].losses, pool._waiting[-1].suspect) == (0, False)
    assert ended(pool, 1)["endless"].outcome is Outcome.TIMEOUT


def test_what_a_job_waits_for_others_is_not_in_its_time():
    pool = pool_of("A", capacity=3)
    pool.submit(job("patient", "hang", deadline_s=30.0))
    pool.poll(0.0)
    (number,), worker = pool.started[0].held, pool.started[0]
    worker.answers.append(Paused(number, waits=True, worked_s=29.0))
    pool.poll(0.0)
    assert pool._slots[0].until_s is None
    worker.answers.append(Paused(number, waits=False, worked_s=29.0))
    pool.poll(0.0)
    assert pool._slots[0].until_s <= time.monotonic() + 1.0
    worker.answers.append(Paused(number, waits=False, worked_s=30.0))
    pool.poll(0.0)
    pool.poll(0.0)
    assert worker.ended
