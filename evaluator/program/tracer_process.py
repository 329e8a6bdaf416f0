"""The parent's side of one tracer child: start, ask once, hold the deadline, end it."""

import importlib.util
import marshal
import os
import pathlib
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from evaluator import confinement, process_end
from evaluator.program.plan_reader import MAX_TEXT_BYTES
from evaluator.program.tracer.child import READY
from evaluator.records import LAYERS, Outcome, ProgramFault, Rung, killed

_START_S = 30.0  # for an interpreter on a crowded machine; only our own code runs before the child is ready
_END_S = 1.0  # from the end of its output to that of the process
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from evaluator.program.tracer import child; child.main()"


class TracerProcess:
    """A context manager around one child process, which serves one request and ends."""

    def __init__(self, cpu_s: int, memory_bytes: int, layers: Sequence[str] = LAYERS):
        self._cpu_s = cpu_s
        package_root = str(pathlib.Path(__file__).resolve().parents[2])
        names = ",".join(confinement.checked(layers))
        arguments = [package_root, _core_path(), str(cpu_s), str(memory_bytes), names]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            bufsize=0,
        )

    def __enter__(self) -> "TracerProcess":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def alive(self) -> bool:
        """Whether the child still waits; one that died while idle must not be blamed on a program."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the child and waits for it."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def ask(self, request: dict[str, Any], deadline_s: float) -> bytes:
        """The child's reply to its one request.

        Raises ProgramFault `timeout` after `deadline_s`, `trace_error` where the child died or wrote too much,
        ProcessLost where it was killed from outside, and RuntimeError where it never got ready.
        """
        self._await_ready()
        deadline = time.monotonic() + deadline_s
        content = marshal.dumps(request)
        reply = bytearray()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            for pipe, event in (
                (self._process.stdin, selectors.EVENT_WRITE),
                (self._process.stdout, selectors.EVENT_READ),
            ):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, event)
            sent = 0
            while True:
                remaining_s = deadline - time.monotonic()
                events = selector.select(remaining_s) if remaining_s > 0 else []
                if not events:
                    raise _timeout(deadline_s)
                for key, _ in events:
                    if key.fileobj is self._process.stdin:
                        sent = self._send(selector, content, sent)
                    elif not (chunk := os.read(key.fd, 1 << 20)):
                        return self._checked(bytes(reply))
                    else:
                        reply += chunk
                if len(reply) > MAX_TEXT_BYTES:
                    raise _trace_error(f"the plan is longer than {MAX_TEXT_BYTES} bytes")

    def _send(self, selector: selectors.BaseSelector, content: bytes, sent: int) -> int:
        """Sends what the pipe takes; closes it after the last byte, or when the child no longer reads."""
        assert self._process.stdin is not None
        try:
            sent += os.write(self._process.stdin.fileno(), content[sent : sent + (1 << 16)])
        except BrokenPipeError:
            sent = len(content)
        if sent >= len(content):
            selector.unregister(self._process.stdin)
            self._process.stdin.close()
        return sent

    def _checked(self, reply: bytes) -> bytes:
        """The reply of a child that has closed its end: an orderly child has ended, too."""
        if reply:
            return reply
        end = process_end.await_end(self._process, _END_S)
        if end is None:
            raise _trace_error("the trace closed its output without a plan")
        if end.killed_from_outside(self._cpu_s):
            raise killed(Rung.TRACE, "the tracer")
        how = f"by signal {-end.code}" if end.code < 0 else f"with exit code {end.code}"
        raise _trace_error(
            f"the sandbox process ended {how}, without a plan: it ran out of memory or CPU time, or crashed"
        )

    def _await_ready(self) -> None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            said = os.read(self._process.stdout.fileno(), 256) if selector.select(_START_S) else b""
        if not said.startswith(READY):
            end = process_end.await_end(self._process, _END_S)
            if end is not None and end.killed_from_outside():
                raise killed(Rung.TRACE, "the tracer")
            code = None if end is None else end.code
            raise RuntimeError(f"the tracer process did not start (exit code {code}); try: {' '.join(self._command())}")
        confinement.warn("the tracer", filter(None, said.removeprefix(READY).decode().strip().split(",")))

    def _command(self) -> list[str]:
        arguments = self._process.args
        return [str(argument) for argument in arguments] if isinstance(arguments, list) else [str(arguments)]


def _core_path() -> str:
    spec = importlib.util.find_spec("evaluator._core")
    if spec is None or spec.origin is None:
        raise RuntimeError("evaluator._core is not built; install the package with `pip install .`")
    return spec.origin


def _timeout(deadline_s: float) -> ProgramFault:
    return ProgramFault(Outcome.TIMEOUT, Rung.TRACE, f"forward took longer than {deadline_s:g} s on symbolic arrays")


def _trace_error(message: str) -> ProgramFault:
    return ProgramFault(Outcome.TRACE_ERROR, Rung.TRACE, message)
