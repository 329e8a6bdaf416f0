"""Compiled objects on disk, by key and digest. Entries are written aside, then renamed; a damaged one is dropped.

The cache holds at most MOST_BYTES or a little more: those not asked for longest go first.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile

MOST_BYTES = 2 << 30  # some 12,000 programs
_SWEEPS = "0"  # keys that begin so, one in sixteen, make room when they are stored


def folder(device: str) -> pathlib.Path:
    """A device's cache under $XDG_CACHE_HOME or ~/.cache, made if need be; a temporary one where it cannot be."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(base) / "cudal1-jax" / device
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError:
        path = pathlib.Path(tempfile.gettempdir()) / f"cudal1-jax-{os.getuid()}" / device
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.parent.stat().st_uid != os.getuid():
            raise PermissionError(f"{path.parent} belongs to another user: set XDG_CACHE_HOME") from None
        return path


def find(cache: pathlib.Path, key: str) -> pathlib.Path | None:
    """Path of an object under `key`, or None. An entry whose bytes do not match the digest in its name is removed."""
    for path in sorted((cache / key).glob("*.so")):
        with contextlib.suppress(OSError):
            if hashlib.sha256(path.read_bytes()).hexdigest() == path.stem:
                os.utime(path.parent)  # asked for: the last to go
                return path
            path.unlink()
    return None


def store(cache: pathlib.Path, key: str, data: bytes) -> pathlib.Path:
    """Keep an object under `key`; returns its path.

    The name is the digest of the bytes, so that no process puts another file in the place of one that a runner, which
    may open that very file alone, is about to load.
    """
    path = cache / key / f"{hashlib.sha256(data).hexdigest()}.so"
    path.parent.mkdir(exist_ok=True, mode=0o700)
    if not path.exists():
        _write(path, data)
        if key.startswith(_SWEEPS):
            make_room(cache, MOST_BYTES)
    return path


def make_room(cache: pathlib.Path, most_bytes: int) -> None:
    """Removes entries, the ones not asked for longest first, until the rest take at most `most_bytes`."""
    entries = []
    for folder_of_key in cache.iterdir():
        with contextlib.suppress(OSError):  # another process may be making room, or a folder of its own
            asked_for = folder_of_key.stat().st_mtime
            entries += [(asked_for, path.stat().st_size, folder_of_key) for path in folder_of_key.glob("*.so")]
    held = sum(nbytes for _, nbytes, _ in entries)
    for _, nbytes, entry in sorted(entries):
        if held <= most_bytes:
            break
        shutil.rmtree(entry, ignore_errors=True)
        held -= nbytes


def _write(path: pathlib.Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
