"""Learner and evaluator in two processes: jobs, lost connections, killed servers and learners."""

import contextlib
import random
import signal
import socket
import subprocess
import sys
import threading

import pytest

from evaluator.judge.job import Job
from evaluator.records import Limits, Mode, Outcome
from evaluator.tasks import catalog
from evaluator.workers import remote
from evaluator.workers.judging_thread import JudgingThread
from evaluator.workers.pool import PoolError, stream


def job(key, text="ok", task="1_019", **fields):
    return Job(key=key, text=text, task=catalog.get(task), **fields)


class Proxy:
    """Stands between learner and evaluator, and cuts what goes through it."""

    def __init__(self, target):
        host, port = target.split(":")
        self.target, self.connections, self.cuts = (host, int(port)), [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                ours, _ = self.listener.accept()
            except OSError:
                return
            theirs = socket.create_connection(self.target)
            self.connections.append((ours, theirs))
            for source, sink in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with_end(each)

    def cut(self):
        self.cuts += 1
        for pair in self.connections:
            for each in pair:
                with_end(each)
        self.connections.clear()

    def close(self):
        self.listener.close()
        self.cut()


def with_end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@pytest.fixture
def proxy():
    made = []

    def make(target):
        made.append(Proxy(target))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_every_job_comes_back_once_with_its_key(address, connect):
    pool = connect(address)
    unpicklable = threading.Lock()  # a key stays where it is
    keys = [(key, "sample") for key in range(30)] + [unpicklable]
    for key in keys:
        pool.submit(job(key))
    found = [(done.key, verdict) for done, verdict in pool.completed()]
    assert len(found) == len(keys)
    assert {key for key, _ in found} == set(keys)
    assert all(verdict.ok for _, verdict in found)
    assert pool.outstanding == 0


def test_results_come_in_the_order_in_which_they_end(address, connect, tmp_path):
    pool = connect(address)
    pool.submit(job("slow", f"await {tmp_path / 'quick'}"))
    pool.submit(job("quick"))
    order = []
    for done, _ in pool.completed():
        order.append(done.key)
        (tmp_path / done.key).touch()
    assert order == ["quick", "slow"]


def test_what_a_program_does_to_a_worker_is_what_it_does_here(serve, connect, tmp_path):
    pool = connect(serve(workers=1)[1])
    pool.submit(job("deadly", "die"))
    pool.submit(job("unlucky", f"once {tmp_path / 'died'}"))
    pool.submit(job("endless", "hang", deadline_s=0.3))
    pool.submit(job("next"))
    found = {done.key: verdict for done, verdict in pool.completed()}
    assert found["deadly"].outcome is Outcome.EVALUATOR_ERROR
    assert "died (SIGKILL), 2 times" in found["deadly"].message
    assert found["unlucky"].ok
    assert found["endless"].outcome is Outcome.TIMEOUT
    assert "no verdict within 0.3 s" in found["endless"].message
    assert found["next"].ok


def test_the_learners_deadline_holds_for_jobs_without_their_own(address, connect):
    pool = connect(address, deadline_s=0.4)
    pool.submit(job("endless", "hang"))
    ((_, verdict),) = pool.completed()
    assert "no verdict within 0.4 s" in verdict.message


def test_the_learners_options_reach_the_judge_and_hold_for_its_jobs_alone(serve, connect):
    _, address = serve(workers=1)
    one = connect(address, judge_options={"device": "cpu", "mode": "verify", "seed": 5, "limits": Limits(trace_s=3.0)})
    two = connect(address, judge_options={"device": "cpu", "mode": Mode.QUICK, "seed": 6})
    for key in range(3):
        one.submit(job(key))
        two.submit(job(key))
    assert {(verdict.mode, verdict.seeds[1]) for _, verdict in one.completed()} == {(Mode.VERIFY, 5)}
    assert {(verdict.mode, verdict.seeds[1]) for _, verdict in two.completed()} == {(Mode.QUICK, 6)}


def test_a_stream_reads_no_further_than_the_evaluator_takes(address, connect):
    pool = connect(address)
    read = []

    def jobs():
        for key in range(200):
            read.append(key)
            yield job(key)

    for done, _ in enumerate(stream(pool, jobs()), start=1):
        assert len(read) - done <= pool.in_flight == 16
    assert done == 200


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_a_connection_that_is_cut_again_and_again_costs_and_doubles_nothing(address, connect, proxy, seed):
    between = proxy(address)
    pool = connect(between.address)
    rng, seen = random.Random(seed), []
    for done, verdict in stream(pool, (job(key, "sleep 0.01") for key in range(60))):
        assert verdict.ok
        seen.append(done.key)
        if between.cuts < 4 and rng.random() < 0.15:
            between.cut()
    assert sorted(seen) == list(range(60))
    assert between.cuts


def test_a_server_killed_and_started_again_costs_and_doubles_nothing(serve, connect, running, wait_until):
    process, address = serve()
    pool = connect(address)
    seen = []
    for done, verdict in stream(pool, (job(key, "sleep 0.05") for key in range(40))):
        assert verdict.ok
        seen.append(done.key)
        if len(seen) in (5, 15):
            worker = verdict.seeds[0]
            process.kill()
            process.wait()
            wait_until(lambda pid=worker: not running(pid))  # its workers end with it
            process, _ = serve(address)
    assert sorted(seen) == list(range(40))


def test_a_server_told_to_end_takes_its_workers_along(serve, connect, running, wait_until):
    process, address = serve(workers=1)
    pool = connect(address)
    pool.submit(job(0))
    ((_, verdict),) = pool.completed()
    pool.submit(job("endless", "hang"))
    process.terminate()
    assert process.wait(timeout=60) == 0
    wait_until(lambda: not running(verdict.seeds[0]))


def test_a_learner_that_is_killed_leaves_the_evaluator_to_the_others(serve, connect, key_path):
    _, address = serve(workers=1)
    script = f"""
from evaluator.judge.job import Job
from evaluator.tasks import catalog
from evaluator.workers import key_file
from evaluator.workers.remote import RemotePool
pool = RemotePool({address!r}, key_file.load({str(key_path)!r}))
for key in range(16):
    pool.submit(Job(key=key, text="sleep 1", task=catalog.get("1_019")))
print("submitted", flush=True)
next(pool.completed())
input()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as learner:
        assert learner.stdout.readline() == b"submitted\n"
        learner.send_signal(signal.SIGKILL)
    pool = connect(address)
    pool.submit(job("next"))
    pool.submit(job("one more"))
    assert all(verdict.ok for _, verdict in pool.completed())


def test_learners_take_turns():
    taken = []

    class Pool:
        outstanding, capacity = 0, 1

        def submit(self, job, options):
            taken.append(job.key)

    thread = JudgingThread(Pool, deliver=None, fail=None)
    for key in range(3):
        thread.put("many", job(f"many {key}"), {})
    thread.put("few", job("few"), {})
    thread.put("gone", job("gone"), {})
    thread.drop("gone")
    thread._feed(Pool())
    assert taken == ["many 0", "few", "many 1", "many 2"]


def test_an_evaluator_that_never_comes_back_is_an_error_and_its_jobs_are_kept(serve, connect):
    process, address = serve()
    pool = connect(address, patience_s=0.5)
    pool.submit(job(0, "sleep 30"))
    process.kill()
    process.wait()
    with pytest.raises(PoolError, match=rf"no evaluator at {address} .*python -m evaluator serve --address={address}"):
        list(pool.completed())
    assert pool.outstanding == 1


def test_a_job_that_every_connection_is_lost_over_ends_in_a_verdict(serve, connect, proxy):
    between = proxy(serve(workers=1)[1])
    pool = connect(between.address)
    pool.submit(job("slow", "sleep 60"))
    for _ in range(remote.ATTEMPTS):
        if pool._link is None:
            pool._connect(60.0)
        pool._send_waiting()
        between.cut()
        pool._hear()  # which finds that it is lost
    ((_, verdict),) = pool.completed()
    assert verdict.outcome is Outcome.EVALUATOR_ERROR
    assert "lost 5 times while it had this job" in verdict.message
