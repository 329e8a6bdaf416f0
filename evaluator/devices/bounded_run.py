"""One run of a command whose time, words and processes are bounded: when it returns, nothing of the run is left."""

import dataclasses
import os
import pathlib
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from evaluator import process_end
from evaluator.process_end import ProcessEnd

_POLL_S = 0.002  # between the end of the output and that of the process, which follow each other closely


@dataclasses.dataclass(frozen=True)
class Run:
    end: ProcessEnd
    errors: bytes  # what was written to standard error; more than `most_bytes` where it said too much
    expired: bool  # whether it took longer than it might


def run(
    command: Sequence[str], folder: pathlib.Path, environment: Mapping[str, str], wall_s: float, most_bytes: int
) -> Run:
    """Runs `command` in `folder`, with nothing to read and nowhere to write but standard error.

    A command that takes longer than `wall_s`, or writes more than `most_bytes`, is killed with all it started.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    )
    assert process.stderr is not None
    deadline = time.monotonic() + wall_s
    errors, expired = b"", False
    try:
        errors = _read(process.stderr.fileno(), most_bytes, deadline)
        if len(errors) <= most_bytes:
            expired = not _ends(process.pid, deadline)
    finally:
        # The leader is not waited for yet, so its number cannot have become another group's.
        os.killpg(process.pid, signal.SIGKILL)
        end = process_end.await_end(process, patience_s=float("inf"))
        process.stderr.close()
    assert end is not None
    return Run(end, errors, expired)


def _read(descriptor: int, most_bytes: int, deadline: float) -> bytes:
    """What is written until the end, the deadline, or the first byte too many."""
    found = bytearray()
    while len(found) <= most_bytes:
        readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(descriptor, 1 << 16) if readable else b""
        if not chunk:
            break
        found += chunk
    return bytes(found)


def _ends(pid: int, deadline: float) -> bool:
    """Whether a process ends in time. It is left to be waited for."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True
