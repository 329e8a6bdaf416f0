"""Reads a program file, whatever is in it: the screen, not the reader, decides about its text."""

import codecs
import stat
from pathlib import Path

MAX_BYTES = 64 << 20  # far above any source limit; only keeps a disk image out of memory


def read_program(path: Path) -> str:
    """Text of a program file. Bytes that are no UTF-8 become lone surrogates, which the screen refuses by line.

    ValueError: no such file, a folder, a pipe or device, unreadable, or more than 64 MiB.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # a folder says so when it is read
            raise ValueError(f"{path} is a pipe or a device: save the program as a file")
        if found.st_size > MAX_BYTES:
            raise ValueError(f"{path} holds {found.st_size} bytes, more than {MAX_BYTES}: not a program")
        return path.read_bytes().removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
