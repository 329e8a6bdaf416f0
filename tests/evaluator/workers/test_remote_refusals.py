"""What an evaluator refuses: other keys, versions, devices and tasks, and whatever else strangers and learners send."""

import os
import random
import socket
import threading

import pytest

from evaluator.commands.command_line import main
from evaluator.judge import doctor
from evaluator.judge.job import Job
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task
from evaluator.workers import frames, key_file, remote
from evaluator.workers.pool import PoolError
from evaluator.workers.remote import RemotePool


def job(key, text="ok", task="1_019", **fields):
    return Job(key=key, text=text, task=catalog.get(task), **fields)


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


def test_a_job_sent_twice_or_too_many_are_refused(address, connect):
    record = remote.wire.job_record(job(0, "hang", deadline_s=0.3))
    for numbers in ([0, 0], range(17)):
        broken = connect(address)
        for number in numbers:
            broken._link.send({"kind": "job", "number": number, "job": record})
        with pytest.raises(PoolError, match="more than 16 jobs at once, or one twice"):
            broken._link.receive()
        broken.close()


@pytest.mark.parametrize(
    "text", [b'{"kind": "job", "deadline_s": NaN}', b'{"kind": "job", "x": -Infinity}', b"\xff", b""]
)
def test_what_is_no_strict_json_is_not_read(text):
    with pytest.raises(frames.BadFrame, match="not JSON"):
        frames.parse(text)


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
