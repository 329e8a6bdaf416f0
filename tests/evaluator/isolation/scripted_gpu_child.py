"""The process that has the GPU without a GPU: its workbench answers by trying what it should be unable to do."""

import ctypes
import mmap
import os
import pathlib
import socket
import tempfile
import threading

from evaluator.judge import cuda_child


class Attempts:
    """Stands for a workbench: `outputs(folder, port)` gives (what was tried, how it ended) for each attempt."""

    class device:
        architecture = 90

    def outputs(self, folder, port):
        outside = pathlib.Path(folder)
        attempts = {
            "run a program": lambda: os.execv("/bin/true", ["true"]),
            "run a shell": lambda: run_shell(outside / "made by a shell"),
            "fork": os.fork,
            "connect": lambda: socket.create_connection(("127.0.0.1", port), timeout=5),
            "open a local socket": lambda: socket.socket(socket.AF_UNIX),
            "read elsewhere": lambda: (outside / "kept").read_text(),
            "write elsewhere": lambda: (outside / "new").write_text("x"),
            "overwrite": lambda: (outside / "kept").write_text("x"),
            "change a mode": lambda: (outside / "kept").chmod(0o777),
            "remove": lambda: (outside / "kept").unlink(),
            "make a folder": lambda: (outside / "folder").mkdir(),
            "signal the parent": lambda: os.kill(os.getppid(), 0),
            "load a library": lambda: ctypes.CDLL("libresolv.so.2"),
            "map code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
            "start a thread": start_thread,
            "use a temporary file": use_temporary_file,
            "keep a kernel": lambda: (pathlib.Path(os.environ["CUPY_CACHE_DIR"]) / "kernel").write_text("x"),
            "open a device": lambda: open("/dev/null", "wb").close(),
        }
        return tuple((name, ending(attempt)) for name, attempt in attempts.items())


def ending(attempt):
    try:
        attempt()
    except (OSError, RuntimeError) as error:
        return f"refused: {type(error).__name__}"
    return "done"


def run_shell(target):
    if os.system(f"touch {target}") != 0:
        raise OSError("the shell did not run")


def start_thread():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def use_temporary_file():
    """As CuPy does for every kernel that it compiles: a folder, a file in it, a rename."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernel.cu")
        path.write_text("x")
        path.rename(path.with_suffix(".cubin"))


def main(pipe):
    cuda_child._workbench_class = lambda: lambda limits, ordinal: Attempts()
    cuda_child.main(pipe)
