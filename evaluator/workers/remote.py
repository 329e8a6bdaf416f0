"""A pool on another host: jobs go to `python -m evaluator serve` there, verdicts come back. Connections may be lost."""

import collections
import contextlib
import dataclasses
import hmac
import logging
import socket
import time
from collections.abc import Iterator
from typing import Self

from evaluator.judge import verdict_json
from evaluator.judge.job import Job
from evaluator.records import EVALUATOR_VERSION, VERDICT_SCHEMA, Outcome, Verdict
from evaluator.workers import frames, wire
from evaluator.workers.dispatch import JudgeOptions
from evaluator.workers.frames import BadFrame, Message, Seal
from evaluator.workers.pool import PoolError
from evaluator.workers.unjudged import unjudged

ATTEMPTS = 5  # a job that was there so often when the connection was lost is ours to explain: evaluator_error
SILENCE_S = 60.0  # the evaluator gives a sign of life every 15 s
_PAUSES_S = (0.1, 0.3, 1.0, 3.0)  # between attempts to connect; the last one again and again

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class _Unjudged:
    job: Job
    losses: int = 0  # connections that were lost while it was at the other side


@dataclasses.dataclass
class _Link:
    """A connection on which both sides have shown the key."""

    connection: socket.socket
    closed: Seal
    opened: Seal
    in_flight: int = 0

    def send(self, message: Message) -> None:
        self.connection.sendall(self.closed.close(message))

    def receive(self) -> Message:
        """The next message. PoolError: the evaluator refuses."""
        message = self.opened.open(frames.receive(self.connection, frames.FRAME_BYTES))
        if message["kind"] == "refused":
            raise PoolError(f"the evaluator refuses: {message.get('message')}")
        return message


class RemotePool:
    """Judges through the evaluator at `address` ("host:port"); see `Pool`. `key`: `key_file.load`.

    A job stays here until its verdict has come. A lost connection is made again, for up to `patience_s` each time, and
    the jobs that were at the other side are given again; the evaluator forgets those of a connection that has ended, so
    each has one verdict. PoolError: the evaluator is out of reach, has another key or version, or lacks a task.
    """

    def __init__(
        self,
        address: str,
        key: bytes,
        judge_options: JudgeOptions | None = None,
        deadline_s: float = 300.0,
        *,
        patience_s: float = 300.0,
    ):
        self._address, self._key = address, key
        self._where = host_and_port(address)
        self._options = dict(judge_options or {})
        self._deadline_s, self._patience_s = deadline_s, patience_s
        self._record = wire.options_record(self._options)
        self._waiting: collections.deque[int] = collections.deque()
        self._unjudged: dict[int, _Unjudged] = {}  # by number: what has no verdict
        self._there: list[int] = []  # numbers of those at the other side, on this connection
        self._done: collections.deque[tuple[Job, Verdict]] = collections.deque()
        self._models: dict[str, str] = {}  # task id -> the model of device that judged it
        self._next = 0
        self._link: _Link | None = None
        self._connect(min(patience_s, 10.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def outstanding(self) -> int:
        return len(self._unjudged) + len(self._done)

    @property
    def in_flight(self) -> int:
        return self._link.in_flight if self._link is not None else 1

    def submit(self, job: Job) -> None:
        job.task.arrays_at(job.size)
        self._unjudged[self._next] = _Unjudged(job)
        self._waiting.append(self._next)
        self._next += 1
        self._send_waiting()

    def completed(self) -> Iterator[tuple[Job, Verdict]]:
        while self.outstanding:
            while self._done:
                yield self._done.popleft()
            if self._unjudged:
                self._hear()

    def close(self) -> None:
        self._drop_link()
        self._unjudged.clear()
        self._waiting.clear()
        self._done.clear()

    def _hear(self) -> None:
        """Waits for one message, on a new connection where there is none."""
        if self._link is None:
            self._connect(self._patience_s)
        self._send_waiting()
        if self._link is None:
            return
        try:
            message = self._link.receive()
        except (EOFError, OSError, BadFrame) as error:
            self._lose(error)
            return
        if message["kind"] == "verdict":
            self._finish(message)
        elif message["kind"] == "rejected":
            raise PoolError(str(message.get("message")))

    def _finish(self, message: Message) -> None:
        number = message.get("number")
        if number not in self._there:
            return  # nobody waits for it
        try:
            verdict = verdict_json.from_json(str(message.get("verdict")))
        except ValueError as error:
            raise PoolError(f"the evaluator at {self._address} sent {error}") from error
        self._there.remove(number)
        job = self._unjudged.pop(number).job
        if verdict.ok and verdict.device_name:
            self._models.setdefault(job.task.id, verdict.device_name)
        self._done.append((job, verdict))

    def _send_waiting(self) -> None:
        while self._link is not None and self._waiting and len(self._there) < self._link.in_flight:
            number = self._waiting.popleft()
            job = self._unjudged[number].job
            if job.device_name is None:
                job = dataclasses.replace(job, device_name=self._models.get(job.task.id))
            self._there.append(number)
            try:
                self._link.send({"kind": "job", "number": number, "job": wire.job_record(job)})
            except OSError as error:
                self._lose(error)

    def _lose(self, reason: Exception) -> None:
        """The connection is gone: what was at the other side comes first on the next one."""
        logger.warning("connection to the evaluator at %s lost: %s", self._address, reason or "it has closed it")
        self._drop_link()
        for number in reversed(self._there):
            held = self._unjudged[number]
            held.losses += 1
            if held.losses < ATTEMPTS:
                self._waiting.appendleft(number)
            else:
                del self._unjudged[number]
                message = f"the connection to the evaluator was lost {ATTEMPTS} times while it had this job"
                verdict = unjudged(held.job, self._options, message, Outcome.EVALUATOR_ERROR)
                self._done.append((held.job, verdict))
        self._there.clear()

    def _connect(self, patience_s: float) -> None:
        """Tries until it succeeds. PoolError: refused, or out of reach for longer than `patience_s`."""
        end_s, attempt = time.monotonic() + patience_s, 0
        while True:
            try:
                self._link = self._greet()
                return
            except (EOFError, OSError) as error:
                pause_s = _PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]
                if time.monotonic() + pause_s > end_s:
                    raise PoolError(
                        f"no evaluator at {self._address} ({error or 'it closes the connection'}): start one there with"
                        f" `python -m evaluator serve --address={self._address} --key-file=PATH`"
                    ) from error
                attempt += 1
                time.sleep(pause_s)

    def _greet(self) -> _Link:
        connection = socket.create_connection(self._where, timeout=SILENCE_S)
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            frames.keep_alive(connection)
            link = self._begin(connection)
            stack.pop_all()
        return link

    def _begin(self, connection: socket.socket) -> _Link:
        """Both sides show the key, then say their versions."""
        try:
            challenge = frames.parse(frames.receive(connection, frames.GREETING_BYTES))
            _refuse_other_protocol(challenge)
            theirs, ours = str(challenge.get("nonce")), frames.nonce()
            proof = frames.proof(self._key, "client", theirs, ours)
            connection.sendall(frames.plain({"kind": "hello", "nonce": ours, "proof": proof}))
            welcome = frames.parse(frames.receive(connection, frames.GREETING_BYTES))
            if welcome["kind"] == "refused":
                raise PoolError(f"the evaluator refuses: {welcome.get('message')}")
            expected = frames.proof(self._key, "server", theirs, ours)
            if not hmac.compare_digest(str(welcome.get("proof", "")).encode(), expected.encode()):
                raise PoolError(f"what answers at {self._address} does not have the key")
            session_key = frames.session_key(self._key, theirs, ours)
            link = _Link(connection, Seal(session_key, "to evaluator"), Seal(session_key, "to learner"))
            link.send(
                {
                    "kind": "begin",
                    "evaluator_version": EVALUATOR_VERSION,
                    "verdict_schema": VERDICT_SCHEMA,
                    "judge_options": self._record,
                    "deadline_s": self._deadline_s,
                }
            )
            link.in_flight = int(link.receive()["in_flight"])
        except (BadFrame, KeyError) as error:
            raise PoolError(f"what answers at {self._address} is no evaluator: {error}") from error
        return link

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.connection.close()
            self._link = None


def _refuse_other_protocol(challenge: Message) -> None:
    if challenge["kind"] == "refused":
        raise PoolError(f"the evaluator refuses: {challenge.get('message')}")
    if challenge.get("protocol") != frames.PROTOCOL:
        raise PoolError(
            f"the evaluator speaks protocol {challenge.get('protocol')}, this learner {frames.PROTOCOL}: install the"
            " same version on both"
        )


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of "host:port"; an IPv6 host is in brackets. ValueError: something else."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"address {address!r}, expected host:port")
    return host.strip("[]"), int(port)
