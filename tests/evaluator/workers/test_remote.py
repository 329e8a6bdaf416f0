"""Learner and evaluator in two processes: lost connections, killed servers, other keys and versions, noise."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.judge import doctor
from evaluator.judge.job import Job
from evaluator.records import Limits, Mode, Outcome
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task
from evaluator.workers import frames, key_file, remote
from evaluator.workers.judging_thread import JudgingThread
from evaluator.workers.pool import PoolError, stream
from evaluator.workers.remote import RemotePool

HERE = Path(__file__).parent


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(scope="module")
def key_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "key"
    key_file.load_or_create(path)
    return path


@contextlib.contextmanager
def serving(key_path, folder):
    """Starts evaluators and waits until they listen; gives (process, address) of each."""
    started = []

    def make(address="127.0.0.1:0", workers=2):
        log = (folder / f"server{len(started)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, str(HERE / "serving.py"), address, str(key_path), str(workers)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        started.append((process, log))
        line = process.stdout.readline()
        assert line.endswith(f" judges on cpu with {workers} worker{'s' * (workers > 1)}\n")
        return process, line.split()[0]

    try:
        yield make
    finally:
        for process, log in started:
            process.kill()
            process.wait()
            process.stdout.close()
            log.close()


@pytest.fixture
def serve(key_path, tmp_path):
    """An evaluator of a test's own, for those that do something to it."""
    with serving(key_path, tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def address(key_path, tmp_path_factory):
    """One evaluator with two workers for the tests that leave it as it was."""
    with serving(key_path, tmp_path_factory.mktemp("evaluator")) as make:
        yield make()[1]


@pytest.fixture
def connect(key_path):
    pools = []

    def make(address, **options):
        options.setdefault("patience_s", 60.0)
        pools.append(RemotePool(address, key_file.load(key_path), **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


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
    assert "died (exit code -9), 2 times" in found["deadly"].message
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
        outstanding = 0

        def submit(self, job, options):
            taken.append(job.key)

    thread = JudgingThread(Pool, 1, deliver=None, fail=None)
    for key in range(3):
        thread.put("many", job(f"many {key}"), {})
    thread.put("few", job("few"), {})
    thread.put("gone", job("gone"), {})
    thread.drop("gone")
    thread._feed(Pool())
    assert taken == ["many 0", "few", "many 1", "many 2"]


def test_another_key_is_refused(address, tmp_path):
    with pytest.raises(PoolError, match="the keys differ: give both sides the same key file"):
        RemotePool(address, b"x" * 32)


def test_an_evaluator_without_the_key_is_not_believed(key_path):
    """Whoever answers must have the key as well: it decides about rewards."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"

    def pretend():
        connection, _ = listener.accept()
        connection.sendall(frames.plain({"kind": "challenge", "protocol": frames.PROTOCOL, "nonce": "0"}))
        frames.receive(connection, 1024)
        connection.sendall(frames.plain({"kind": "welcome", "proof": "00" * 32}))
        connection.close()

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(PoolError, match=f"what answers at {address} does not have the key"):
        RemotePool(address, key_file.load(key_path))
    thread.join()
    listener.close()


@pytest.mark.parametrize(("name", "value"), [("EVALUATOR_VERSION", "9.9"), ("VERDICT_SCHEMA", 99)])
def test_another_version_is_refused_with_both_named(address, connect, monkeypatch, name, value):
    monkeypatch.setattr(remote, name, value)
    with pytest.raises(PoolError, match=rf"the learner has .*{value}.*, this evaluator is .* install the same version"):
        connect(address)


def test_another_protocol_is_refused(address, connect, monkeypatch):
    monkeypatch.setattr(frames, "PROTOCOL", 2)
    with pytest.raises(PoolError, match="the evaluator speaks protocol 1, this learner 2"):
        connect(address)


def test_another_device_is_refused(address, connect):
    with pytest.raises(PoolError, match="this evaluator judges on cpu, the learner wants cuda"):
        connect(address, judge_options={"device": "cuda"})


def test_a_task_that_differs_is_refused(address, connect):
    pool = connect(address)
    known = catalog.get("1_019")
    sizes = {"cpu": (Array("x", (3,)),)}
    pool.submit(Job(key=0, text="ok", task=Task(known.id, known.name, known.family, known.source, sizes)))
    with pytest.raises(PoolError, match="task 1_019 or its plain program differs between learner and evaluator"):
        list(pool.completed())


def test_a_task_that_it_does_not_have_is_named(address, connect):
    pool = connect(address)
    pool.submit(Job(key=0, text="ok", task=Task("mine", "mine", "x", "", {"cpu": (Array("x", (3,)),)})))
    with pytest.raises(PoolError, match="the evaluator has no task mine: start it with --tasks-file"):
        list(pool.completed())


def test_options_that_cannot_travel_are_refused():
    with pytest.raises(ValueError, match="cannot travel: clock"):
        RemotePool("h:1", b"x" * 32, {"clock": None})


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


def noise(rng):
    yield b""
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"\xff" * 64
    yield b"\x80\x04\x95" + bytes(100)  # how a pickle begins
    for text in (
        b"{",
        b"[]",
        b"null",
        b'{"kind": 3}',
        b'{"kind": "hello"}',
        b"[" * 1000,
        b'{"kind": "hello", "proof": 1}',
    ):
        yield frames.frame(text)
    yield (1 << 31).to_bytes(4, "big") + b"x"
    yield frames.plain({"kind": "hello", "nonce": "n", "proof": "00" * 32})
    for _ in range(40):
        yield rng.randbytes(rng.randrange(1, 200))


def test_whatever_a_stranger_sends_the_others_are_served(address, connect):
    pool = connect(address)
    where = remote.host_and_port(address)
    for data in noise(random.Random(0)):
        with socket.create_connection(where) as stranger:
            stranger.sendall(data)
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(30)
            while stranger.recv(1 << 16):  # until it is shown out
                pass
    pool.submit(job(0))
    assert [verdict.ok for _, verdict in pool.completed()] == [True]


@pytest.mark.slow
def test_a_stranger_who_says_nothing_is_shown_out(address):
    with socket.create_connection(remote.host_and_port(address), timeout=60) as stranger:
        frames.receive(stranger, frames.GREETING_BYTES)  # the challenge
        assert stranger.recv(1) == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--address=nowhere"], "address 'nowhere', expected host:port"),
        ([], "no key: give --key-file"),
        (["--key-file=/nowhere/key"], "/nowhere/key"),
        (["--tasks-file=/nowhere.py"], "/nowhere.py"),
        (["--address=192.0.2.1:1", "--key-file=KEY"], "192.0.2.1"),
    ],
)
def test_serving_that_cannot_be_is_wrong_use(arguments, message, key_path, capsys, monkeypatch):
    monkeypatch.delenv("CUDAL1_POOL_KEY", raising=False)
    monkeypatch.setattr(doctor, "missing_for", lambda device: None)
    assert main(["serve", *(each.replace("KEY", str(key_path)) for each in arguments)]) == 2
    assert message in capsys.readouterr().err


def messages(rng):
    good = {"kind": "job", "number": 0, "job": remote.wire.job_record(job(0))}
    for kind in ("", "verdict", "x" * 1000):
        yield good | {"kind": kind}
    for number in (None, "0", 1.5, [], {}):
        yield good | {"number": number}
    for record in (None, [], "job", {}):
        yield good | {"job": record}
    for name, values in {
        "text": (None, 3, "\ud800"),
        "cases": ("plain", [1], {}),
        "timing": (1, None),
        "seed": (True, "x", 1.5),
        "record": ("3", [], True),
        "deadline_s": ("soon",),
        "task_digest": (None, 1),
        "task": (None, ["1_019"]),
    }.items():
        for value in values:
            yield good | {"job": good["job"] | {name: value}}
        yield good | {"job": {key: value for key, value in good["job"].items() if key != name}}


def test_whatever_a_learner_sends_the_others_are_served(address, connect):
    pool = connect(address)
    for message in messages(random.Random(0)):
        broken = connect(address)
        broken._link.send(message)
        with pytest.raises(PoolError, match="the evaluator refuses"):
            broken._link.receive()
        broken.close()
    pool.submit(job(0))
    assert [verdict.ok for _, verdict in pool.completed()] == [True]


def test_a_message_that_was_changed_repeated_or_sent_back_is_not_read():
    key = frames.session_key(b"k" * 32, "a", "b")
    sender, receiver = frames.Seal(key, "to evaluator"), frames.Seal(key, "to evaluator")
    body = sender.close({"kind": "job"})[4:]
    assert receiver.open(body) == {"kind": "job"}
    for wrong, seal in (
        (body, receiver),  # repeated
        (body[:-1] + b" ", frames.Seal(key, "to evaluator")),
        (body, frames.Seal(key, "to learner")),
        (body, frames.Seal(frames.session_key(b"k" * 32, "a", "c"), "to evaluator")),
        (b"", frames.Seal(key, "to evaluator")),
    ):
        with pytest.raises(frames.BadFrame, match="not signed with the shared key"):
            seal.open(wrong)


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:x", "host:70000"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="expected host:port"):
        remote.host_and_port(address)


def test_an_address_of_version_6_has_brackets():
    assert remote.host_and_port("[::1]:80") == ("::1", 80)


def test_no_descriptor_is_left_open(address, connect):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        connect(address).close()
    assert len(os.listdir("/proc/self/fd")) == before
