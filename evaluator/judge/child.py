"""Python children of the evaluator: one function, one pipe, gone when their parent is.

Not `multiprocessing.Process`: a spawned one imports the caller's main module again, which for a training run means its
imports and for a notebook or a script without `__main__` guard means failure; a forked one does not survive JAX.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

_PR_SET_PDEATHSIG = 1
_BOOT = """
import importlib, json, sys
path, module, name, descriptor, parent = json.loads(sys.argv[1])
sys.path[:] = path
from evaluator.judge.child import serve
serve(getattr(importlib.import_module(module), name), descriptor, parent)
"""


class Child:
    """A running child. `pipe` carries pickled objects both ways; a lost child shows as EOFError or OSError on it."""

    def __init__(self, main: Callable[[Connection], None]):
        """Starts `main(pipe)`, a function of an importable module, and returns at once."""
        ours, theirs = socket.socketpair()
        arguments = [sys.path, main.__module__, main.__qualname__, theirs.fileno(), os.getpid()]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=2,  # standard output is the caller's: nothing a child prints may reach it
            pass_fds=[theirs.fileno()],
            process_group=0,  # Ctrl-C is the caller's to hear; its children see their pipe close
        )
        theirs.close()
        self.pipe = Connection(ours.detach())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self, patience_s: float = 0.0) -> int:
        """Closes the pipe, at which an idle child leaves, and kills it after `patience_s`. Gives its exit code."""
        self.pipe.close()
        try:
            return self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def ending(code: int) -> str:
    """How a process with this exit code ended: "exit code 1", "SIGSEGV"."""
    names = {int(each): each.name for each in signal.Signals}
    return f"exit code {code}" if code >= 0 else names.get(-code, f"signal {-code}")


def serve(main: Callable[[Connection], None], descriptor: int, parent: int) -> None:
    """What a child runs: `main` until its pipe closes."""
    die_with(parent)
    with Connection(descriptor) as pipe:
        try:
            main(pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            return  # the parent has gone, or closed its end


def die_with(parent: int) -> None:
    """Asks Linux to kill this process when the thread that started it ends; elsewhere its closed pipe must do.

    A parent that died before the request was made leaves no signal, hence the look at its id afterwards.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
