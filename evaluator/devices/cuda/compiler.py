"""The parent's side of one compiler process: start it, ask it, hold the deadline, start it anew where it is lost."""

import dataclasses
import importlib.util
import json
import marshal
import os
import re
import selectors
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from evaluator import confinement, process_end
from evaluator.devices.cuda import stubs, toolkit
from evaluator.devices.cuda.headers import bundled
from evaluator.records import Limits, Outcome, ProgramFault, Rung, killed

_END_S = 1.0  # from the end of its output to that of the process
_START_S = 60.0  # a crowded machine; only our own text is compiled before the child is ready
_WALL_PER_CPU_SECOND = 4.0
_MEMORY_BYTES = 64 << 30  # of address space, most of which NVRTC only reserves; CUB takes 0.4 GB of memory
_MUCH_MEMORY_BYTES = 4 << 30  # a process that had more of it was killed for what the text made it do
_MOST_REPLY_BYTES = 64 << 20
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from evaluator.devices.cuda import compiler_child as c; c.main()"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What NVRTC made of one text."""

    cubin: bytes
    log: str
    lowered: dict[str, str]  # name expression -> name in the cubin

    @classmethod
    def checked(cls, facts: object, cubin: bytes) -> "Compiled":
        """From a JSON object that says log and lowered. ValueError where it does not, or not as text."""
        if not isinstance(facts, dict):
            raise ValueError("no JSON object")
        log, lowered = facts.get("log"), facts.get("lowered")
        if not isinstance(log, str):
            raise ValueError("its log is no text")
        if not isinstance(lowered, dict) or not all(isinstance(name, str) for name in lowered.values()):
            raise ValueError("its names are no texts by name")
        return cls(cubin=cubin, log=log, lowered=lowered)


class Rejected(ProgramFault):
    """A `compile_error` whose message is NVRTC's log."""


class Compiler:
    """Compiles one text at a time in a confined process of its own; use it in a `with`. Not for several threads."""

    def __init__(self, limits: Limits, tools: toolkit.Toolkit | None = None, process_text: str = _BOOT):
        """`tools`: which NVRTC; None finds one. `process_text`: the Python that the process runs.

        Raises ProgramFault `evaluator_error` where there is no NVRTC.
        """
        self._limits = limits
        self._process_text = process_text
        self._toolkit = tools or toolkit.find()
        self._process: subprocess.Popen[bytes] | None = None
        self._end_seen: process_end.ProcessEnd | None = None
        self._headers = bundled(self._toolkit) or self._toolkit.headers
        self.version: tuple[int, int] = (0, 0)  # of NVRTC, once the process has been started

    def __enter__(self) -> "Compiler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process; the next text starts another."""
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process.wait()
            self._process = None

    def start(self) -> None:
        """Starts the process if it does not run. ProgramFault `evaluator_error` where NVRTC cannot be used."""
        if self._process is not None and self._process.poll() is None and not self._unread():
            return
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", self._process_text, _package_root(), json.dumps(self._setup())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C", "TMPDIR": "/nonexistent"},
            cwd="/",
            bufsize=0,
        )
        os.set_blocking(self._stdin, False)
        try:
            self._become_ready(self._reply(time.monotonic() + _START_S))
        except (_Lost, TimeoutError) as error:
            self.close()
            message = f"NVRTC's process was not ready after {_START_S:g} s ({error})"
            raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message) from error

    @property
    def identity(self) -> tuple:
        """What a cubin depends on beside its text and options: NVRTC's release, its headers and our stubs."""
        return (self.version, self._headers, stubs.HEADERS)

    def compile(self, source: str, file: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        """One text to one cubin. Raises ProgramFault `compile_error` (`Rejected` with NVRTC's log), `timeout` or
        `evaluator_error`."""
        _check_characters([source, *options, *names])
        self.start()
        includes = [f"-I{folder}" for folder in self._headers]
        request = {"source": source, "file": file, "options": [*options, *includes], "names": list(names)}
        content = marshal.dumps({**request, "headers": stubs.HEADERS})
        deadline = time.monotonic() + self._limits.compile_s * _WALL_PER_CPU_SECOND
        try:
            self._send(struct.pack("<I", len(content)) + content, deadline)
            reply, cubin = self._reply(deadline), self._block(deadline)
            return self._made(reply, cubin, names)
        except TimeoutError as error:
            self.close()
            message = f"compilation was ended after {self._limits.compile_s * _WALL_PER_CPU_SECOND:g} s"
            raise ProgramFault(Outcome.TIMEOUT, Rung.COMPILE, message) from error
        except (_Lost, OSError) as error:
            raise self.lost(file, str(error)) from error
        except ProgramFault:
            raise
        except BaseException:
            self.close()  # or the rest of this reply would be the next text's
            raise

    def lost(self, file: str, seen: str) -> ProgramFault:
        """Ends the process, which answered what NVRTC does not answer, and returns the error to raise."""
        end, self._end_seen = self._end_seen, None
        self.close()
        if end is not None and end.killed_from_outside() and end.peak_bytes < _MUCH_MEMORY_BYTES:
            return killed(Rung.COMPILE, "NVRTC's process")
        message = f"NVRTC was lost while it compiled {file} ({seen}): the text is too much for it; write it more simply"
        return ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)

    def _setup(self) -> dict:
        folders = [str(Path(self._toolkit.nvrtc).parent), *self._headers]
        return {
            "core": _core_path(),
            "nvrtc": self._toolkit.nvrtc,
            "warm_up": "-arch=sm_90",
            "readable": [*folders, "/dev/null"],
            "limits": {"memory_bytes": _MEMORY_BYTES, "file_bytes": 0},
            "layers": confinement.checked(self._limits.confinement),
        }

    def _become_ready(self, ready: dict) -> None:
        if "error" in ready:
            self.close()
            raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, f"{self._toolkit.nvrtc}: {ready['error']}")
        match ready:
            case {"missing": list(missing), "version": [int(major), int(minor)]}:
                self.version = (major, minor)
            case _:
                raise _Lost("its first reply lacks missing or version")
        confinement.warn("NVRTC", map(str, missing))

    def _made(self, reply: dict, cubin: bytes, names: Sequence[str]) -> Compiled:
        match reply:
            case {"rejected": str(log)}:
                raise Rejected(Outcome.COMPILE_ERROR, Rung.COMPILE, log)
            case {"error": str(message)}:
                raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, f"NVRTC: {message}")
        try:
            made = Compiled.checked(reply, cubin)
        except ValueError as error:
            raise _Lost(f"its reply: {error}") from error
        if unnamed := set(names) - set(made.lowered):
            raise _Lost(f"its reply names no {min(unnamed)!r}")
        return made

    @property
    def _stdin(self) -> int:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _stdout(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def _unread(self) -> bool:
        """Whether the process says something without being asked, as only one that was taken over does."""
        return _ready(self._stdout, selectors.EVENT_READ, deadline=0.0)

    def _send(self, content: bytes, deadline: float) -> None:
        view = memoryview(content)
        while view:
            if not _ready(self._stdin, selectors.EVENT_WRITE, deadline):
                raise TimeoutError
            view = view[os.write(self._stdin, view) :]

    def _reply(self, deadline: float) -> dict:
        try:
            reply = json.loads(self._block(deadline))
        except (ValueError, RecursionError) as error:
            raise _Lost(f"its reply is no JSON: {error}") from error
        if not isinstance(reply, dict):
            raise _Lost("its reply is no JSON object")
        return reply

    def _block(self, deadline: float) -> bytes:
        (size,) = struct.unpack("<I", self._read(4, deadline))
        if size > _MOST_REPLY_BYTES:
            raise _Lost(f"its reply has {size} bytes")
        return self._read(size, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < count:
            if not _ready(self._stdout, selectors.EVENT_READ, deadline):
                raise TimeoutError
            chunk = os.read(self._stdout, count - len(found))
            if not chunk:
                raise _Lost(self._end())
            found += chunk
        return bytes(found)

    def _end(self) -> str:
        assert self._process is not None
        self._end_seen = process_end.await_end(self._process, _END_S)
        return "it closed its output" if self._end_seen is None else f"it ended with {self._end_seen.code}"


class _Lost(Exception):
    """The child ended, or says what it cannot say."""


def _ready(descriptor: int, event: int, deadline: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        return bool(selector.select(max(0.0, deadline - time.monotonic())))


def _check_characters(texts: Sequence[str]) -> None:
    """ProgramFault `compile_error` where a text has what NVRTC cannot be given: a zero, or half a character."""
    for text in texts:
        if found := re.search("[\\0\\ud800-\\udfff]", text):
            line, seen = text.count("\n", 0, found.start()) + 1, f"U+{ord(found[0]):04X}"
            message = f"kernel text line {line}: {seen} is no character of a C++ text: remove it"
            raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message)


def _core_path() -> str:
    spec = importlib.util.find_spec("evaluator._core")
    if spec is None or spec.origin is None:
        message = "evaluator._core is not built: build the package with `pip install .`"
        raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)
    return spec.origin


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[3])
