"""The parent's side of one compiler process: start it, ask it, hold the deadline, start it anew where it is lost."""

import dataclasses
import importlib.util
import json
import logging
import marshal
import os
import selectors
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from evaluator.devices.cuda import stubs, toolkit
from evaluator.devices.cuda.headers import bundled
from evaluator.records import Limits, Outcome, ProgramFault, Rung

logger = logging.getLogger(__name__)

_START_S = 60.0  # a crowded machine; only our own text is compiled before the child is ready
_WALL_PER_CPU_SECOND = 4.0
_MEMORY_BYTES = 64 << 30  # of address space, most of which NVRTC only reserves; CUB takes 0.4 GB of memory
_MOST_REPLY_BYTES = 64 << 20
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from evaluator.devices.cuda import compiler_child as c; c.main()"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What NVRTC made of one text."""

    cubin: bytes
    log: str
    lowered: dict[str, str]  # name expression -> name in the cubin


class Compiler:
    """Compiles one text at a time in a confined process of its own; use it in a `with`. Not for several threads."""

    def __init__(self, limits: Limits, tools: toolkit.Toolkit | None = None):
        """`tools`: which NVRTC; None finds one. Raises ProgramFault `evaluator_error` where there is none."""
        self._limits = limits
        self._toolkit = tools or toolkit.find()
        self._process: subprocess.Popen[bytes] | None = None
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
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, _package_root(), json.dumps(self._setup())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C", "TMPDIR": "/nonexistent"},
            cwd="/",
            bufsize=0,
        )
        try:
            ready = self._reply(time.monotonic() + _START_S)
        except (_Lost, TimeoutError) as error:
            self.close()
            message = f"NVRTC's process was not ready after {_START_S:g} s ({error})"
            raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message) from error
        if "error" in ready:
            self.close()
            raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, f"{self._toolkit.nvrtc}: {ready['error']}")
        if ready["missing"]:
            logger.warning("this kernel lacks %s: NVRTC runs less confined", " and ".join(ready["missing"]))
        self.version = (ready["version"][0], ready["version"][1])

    @property
    def identity(self) -> tuple:
        """What a cubin depends on beside its text and options: NVRTC's release, its headers and our stubs."""
        return (self.version, self._headers, stubs.HEADERS)

    def compile(self, source: str, file: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        """One text to one cubin. Raises ProgramFault `compile_error` (its message is the log), `timeout` or
        `evaluator_error`."""
        self.start()
        assert self._process is not None
        includes = [f"-I{folder}" for folder in self._headers]
        request = {"source": source, "file": file, "options": [*options, *includes], "names": list(names)}
        content = marshal.dumps({**request, "headers": stubs.HEADERS})
        deadline = time.monotonic() + self._limits.compile_s * _WALL_PER_CPU_SECOND
        try:
            self._send(struct.pack("<I", len(content)) + content)
            reply = self._reply(deadline)
            cubin = self._block(deadline)
        except (_Lost, BrokenPipeError) as error:
            self.close()
            message = f"NVRTC was lost while it compiled {file} ({error}): the text is too much for it"
            raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, message) from error
        except TimeoutError as error:
            self.close()
            message = f"compilation was ended after {self._limits.compile_s * _WALL_PER_CPU_SECOND:g} s"
            raise ProgramFault(Outcome.TIMEOUT, Rung.COMPILE, message) from error
        if "rejected" in reply:
            raise ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, str(reply["rejected"]))
        if "error" in reply:
            raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, f"NVRTC: {reply['error']}")
        lowered = {str(name): str(found) for name, found in reply["lowered"].items()}
        return Compiled(cubin=cubin, log=str(reply["log"]), lowered=lowered)

    def _setup(self) -> dict:
        folders = [str(Path(self._toolkit.nvrtc).parent), *self._headers]
        return {
            "core": _core_path(),
            "nvrtc": self._toolkit.nvrtc,
            "warm_up": "-arch=sm_90",
            "readable": [*folders, "/dev/null"],
            "limits": {"memory_bytes": _MEMORY_BYTES, "file_bytes": 0},
        }

    def _send(self, content: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        view = memoryview(content)
        while view:  # the child reads the whole request before it writes, so this cannot block for good
            view = view[os.write(self._process.stdin.fileno(), view) :]

    def _reply(self, deadline: float) -> dict:
        try:
            reply = json.loads(self._block(deadline))
        except ValueError as error:
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
        assert self._process is not None
        assert self._process.stdout is not None
        found = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while len(found) < count:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                chunk = os.read(self._process.stdout.fileno(), count - len(found))
                if not chunk:
                    raise _Lost(f"it ended with {self._process.wait()}")
                found += chunk
        return bytes(found)


class _Lost(Exception):
    """The child ended, or says what it cannot say."""


def _core_path() -> str:
    spec = importlib.util.find_spec("evaluator._core")
    if spec is None or spec.origin is None:
        message = "evaluator._core is not built: build the package with `pip install .`"
        raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)
    return spec.origin


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[3])
