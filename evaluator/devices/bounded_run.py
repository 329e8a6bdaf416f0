"""One run of a command whose time, words and processes are bounded: when it returns, nothing of the run is left."""

import os
import pathlib
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

_POLL_S = 0.002  # between the end of the output and that of the process, which follow each other closely


def run(
    command: Sequence[str], folder: pathlib.Path, environment: Mapping[str, str], wall_s: float, most_bytes: int
) -> tuple[int, bytes]:
    """Exit code (negative: the signal that ended it) and what was written to standard error.

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
    try:
        errors = _read(process.stderr.fileno(), most_bytes, deadline)
        if len(errors) <= most_bytes:
            _await_end(process.pid, deadline)
    finally:
        # The leader is not waited for yet, so its number cannot have become another group's.
        os.killpg(process.pid, signal.SIGKILL)
        exit_code = process.wait()
        process.stderr.close()
    return exit_code, errors


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


def _await_end(pid: int, deadline: float) -> None:
    """Waits for a process and leaves it to be waited for."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
