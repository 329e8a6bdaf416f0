"""Judging for learners on other hosts: `python -m evaluator serve`. One connection is one learner's session."""

import asyncio
import dataclasses
import hmac
import logging
import signal
from collections.abc import Callable, Mapping
from typing import Any

from evaluator.judge import verdict_json
from evaluator.judge.ladder import Judge
from evaluator.records import EVALUATOR_VERSION, VERDICT_SCHEMA, Verdict
from evaluator.tasks.task import Task
from evaluator.workers import capacity, frames, wire
from evaluator.workers.frames import BadFrame, Message, Seal
from evaluator.workers.judging_process import MakeJudge
from evaluator.workers.judging_thread import JudgingThread
from evaluator.workers.local import LocalPool

GREETING_S = 10.0  # in which a new connection must have shown its key
BEAT_S = 15.0  # between signs of life
LEARNERS = 64
_UNREAD_BYTES = 16 << 20  # a learner that reads so little is cut off

logger = logging.getLogger(__name__)


@dataclasses.dataclass(eq=False)
class _Session:
    """A learner that has shown its key."""

    peer: str
    writer: asyncio.StreamWriter
    seal: Seal
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    deadline_s: float = 0.0
    unjudged: set[int] = dataclasses.field(default_factory=set)  # numbers of its jobs

    def send(self, message: Message) -> None:
        if self.writer.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self.writer.transport.abort()
        elif not self.writer.is_closing():
            self.writer.write(self.seal.close(message))


class Server:
    """Judges on `device` for whoever has `key`, with `workers` processes; a learner's options hold for its own jobs.

    A connection that ends takes its jobs with it: the learner gives them again on its next one, which makes every
    verdict arrive once. Whatever a connection sends, the others are served.
    """

    def __init__(
        self,
        key: bytes,
        tasks: Mapping[str, Task],
        device: str,
        workers: int,
        make_judge: MakeJudge = Judge,
        *,
        compilers: int = 0,
    ):
        self._key, self._tasks, self._device, self._workers = key, tasks, device, workers
        self._make_judge = make_judge
        self._compilers = capacity.compilers(compilers, device, workers)
        held = workers * capacity.jobs(device, self._compilers)
        self._window = max(16, 4 * workers, 2 * held)  # jobs that a learner may have here
        self._sessions: set[_Session] = set()
        self._connections = 0

    async def run(self, host: str, port: int, listening: Callable[[str], None]) -> None:
        """Serves until SIGTERM or SIGINT. `listening` is told the address. OSError: it cannot listen there."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        failures: list[BaseException] = []

        def deliver(key: Any, verdict: Verdict) -> None:
            loop.call_soon_threadsafe(self._deliver, key, verdict)

        def fail(error: BaseException) -> None:
            failures.append(error)
            loop.call_soon_threadsafe(ended.set)

        self._thread = JudgingThread(self._pool, deliver, fail)
        server = await asyncio.start_server(self._connected, host, port)
        self._thread.start()
        beat = asyncio.create_task(self._beat())
        try:
            address = server.sockets[0].getsockname()
            listening(f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}")
            await ended.wait()
        finally:
            beat.cancel()
            server.close()
            for session in list(self._sessions):
                session.writer.close()
            await asyncio.to_thread(self._thread.stop)
        if failures:
            raise failures[0]

    def _pool(self) -> LocalPool:
        options = {"device": self._device}
        return LocalPool(self._workers, options, compilers=self._compilers, make_judge=self._make_judge)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from its first byte to its last."""
        session: _Session | None = None
        peer = ":".join(map(str, (writer.get_extra_info("peername") or ("unknown",))[:2]))
        self._connections += 1
        try:
            frames.keep_alive(writer.get_extra_info("socket"))
            async with asyncio.timeout(GREETING_S):
                session, opened = await self._greet(peer, reader, writer)
                await self._begin(session, opened, reader)
            self._sessions.add(session)
            logger.info("learner %s joined", peer)
            while True:
                self._take(session, opened.open(await frames.read(reader, frames.FRAME_BYTES)))
        except (EOFError, OSError):  # gone, or too slow to greet
            pass
        except ValueError as error:
            logger.warning("connection from %s was ended: %s", peer, error)
            refusal = {"kind": "refused", "message": str(error)}
            writer.write(session.seal.close(refusal) if session else frames.plain(refusal))
        finally:
            self._connections -= 1
            if session in self._sessions:
                self._sessions.discard(session)
                self._thread.drop(session)
                logger.info("learner %s left", peer)
            writer.close()

    async def _greet(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[_Session, Seal]:
        """Both sides show the key. ValueError: this one does not have it."""
        if self._connections > LEARNERS:
            raise ValueError(f"{LEARNERS} connections are open already; close one or start another evaluator")
        ours = frames.nonce()
        writer.write(frames.plain({"kind": "challenge", "protocol": frames.PROTOCOL, "nonce": ours}))
        hello = frames.parse(await frames.read(reader, frames.GREETING_BYTES))
        theirs = str(hello.get("nonce", ""))
        expected = frames.proof(self._key, "client", ours, theirs)
        if not hmac.compare_digest(str(hello.get("proof", "")).encode(), expected.encode()):
            raise ValueError("the keys differ: give both sides the same key file")
        writer.write(frames.plain({"kind": "welcome", "proof": frames.proof(self._key, "server", ours, theirs)}))
        session_key = frames.session_key(self._key, ours, theirs)
        return _Session(peer, writer, Seal(session_key, "to learner")), Seal(session_key, "to evaluator")

    async def _begin(self, session: _Session, opened: Seal, reader: asyncio.StreamReader) -> None:
        """Versions and options. ValueError: they do not fit."""
        begin = opened.open(await frames.read(reader, frames.FRAME_BYTES))
        theirs = begin.get("evaluator_version"), begin.get("verdict_schema")
        if begin["kind"] != "begin" or theirs != (EVALUATOR_VERSION, VERDICT_SCHEMA):
            raise ValueError(
                f"the learner has evaluator {theirs[0]} with verdicts of schema {theirs[1]}, this evaluator is"
                f" {EVALUATOR_VERSION} with schema {VERDICT_SCHEMA}: install the same version on both"
            )
        if not isinstance(begin.get("judge_options"), dict) or not isinstance(begin.get("deadline_s"), int | float):
            raise ValueError("a session without options")
        session.options = wire.options_from(begin["judge_options"])
        session.deadline_s = begin["deadline_s"]
        wanted = session.options.setdefault("device", "cpu")
        if wanted != self._device:
            raise ValueError(
                f"this evaluator judges on {self._device}, the learner wants {wanted}: set config.device, or start an"
                f" evaluator with --device={wanted}"
            )
        session.send({"kind": "ready", "in_flight": self._window})

    def _take(self, session: _Session, message: Message) -> None:
        """A job of a learner. ValueError: it is none."""
        number = message.get("number")
        if message["kind"] != "job" or not isinstance(number, int) or not isinstance(message.get("job"), dict):
            raise BadFrame(f"a message of kind {message['kind'][:40]!r}, expected a numbered job")
        if number in session.unjudged or len(session.unjudged) >= self._window:
            raise BadFrame(f"more than {self._window} jobs at once, or one twice")
        try:
            job = wire.job_from(message["job"], (session, number), self._tasks)
        except wire.Unknown as error:
            session.send({"kind": "rejected", "number": number, "message": str(error)})
            return
        if job.deadline_s is None:
            job = dataclasses.replace(job, deadline_s=session.deadline_s)
        session.unjudged.add(number)
        self._thread.put(session, job, session.options)

    def _deliver(self, key: tuple[_Session, int], verdict: Verdict) -> None:
        session, number = key
        if session in self._sessions:  # else it has gone, and gives the job again
            session.unjudged.discard(number)
            session.send({"kind": "verdict", "number": number, "verdict": verdict_json.to_json(verdict)})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            for session in list(self._sessions):
                session.send({"kind": "alive"})
