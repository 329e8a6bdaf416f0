"""Makes attempts to break out, each in a forked process that confines itself first, and prints how each one ended.

    python escape.py '{"profile": ..., "layers": [...], "attempts": [...], "readable": [...], "writable": [...],
                       "limits": {...}}'

The result is JSON: by attempt, "escaped", "errno 13" or "signal 31".
"""

import ctypes
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile

from attempts import Scene
from expectations import ATTEMPTS

import evaluator._core as core

ESCAPED = 0  # what /bin/true ends with as well
_OTHER_ERROR = 254


def main() -> None:
    request = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        os.chmod(folder, 0o777)
        with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract:
            by_path.bind(os.path.join(folder, "unix"))
            name = f"outside-{os.getpid()}"
            abstract.bind("\0" + name)
            for each in (by_path, abstract, server):
                each.listen(64)
            results = {}
            for attempt in request["attempts"]:
                results[attempt] = _ending(attempt, request, folder, server.getsockname()[1], name)
    print(json.dumps(results))


def _ending(attempt: str, request: dict, folder: str, port: int, abstract: str) -> str:
    """How one attempt ended, with a victim and files of its own."""
    memory = ctypes.create_string_buffer(b"evidence")
    victim = _start(signal.pause)
    for name in ("secret", "other"):
        pathlib.Path(folder, name).write_text("evidence")
    file = os.open(os.path.join(folder, "file"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    true_program = pathlib.Path("/bin/true").read_bytes()
    scene = Scene(folder, port, abstract, victim, ctypes.addressof(memory), true_program, file)
    try:
        pid = _start(lambda: _attempt(attempt, request, scene))
        _, status = os.waitpid(pid, 0)
    finally:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        os.close(file)
        for path in pathlib.Path(folder).iterdir():
            if path.name != "unix":
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return "escaped" if code == ESCAPED else f"errno {code}"


def _start(act) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(_OTHER_ERROR)
    return pid


def _attempt(attempt: str, request: dict, scene: Scene) -> None:
    walls = {name: request[name] for name in ("readable", "writable", "limits", "layers")}
    core.confine(request["profile"], **walls)
    try:
        ATTEMPTS[attempt].act(scene)
    except OSError as error:
        os._exit(min(error.errno or _OTHER_ERROR, _OTHER_ERROR))
    os._exit(ESCAPED)


if __name__ == "__main__":
    main()
