"""Compiled objects on disk, by key. Entries are written aside, then renamed; a damaged one is dropped."""

import contextlib
import hashlib
import os
import pathlib
import tempfile


def folder() -> pathlib.Path:
    """The cache's folder under $XDG_CACHE_HOME or ~/.cache, made if need be; a temporary one where it cannot be."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(base) / "cudal1-jax" / "emulator"
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError:
        path = pathlib.Path(tempfile.gettempdir()) / f"cudal1-jax-{os.getuid()}" / "emulator"
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.parent.stat().st_uid != os.getuid():
            raise PermissionError(f"{path.parent} belongs to another user: set XDG_CACHE_HOME") from None
        return path


def find(cache: pathlib.Path, key: str) -> pathlib.Path | None:
    """Path of the object under `key`, or None. An entry whose bytes do not match its digest is removed."""
    path, digest_path = cache / f"{key}.so", cache / f"{key}.sha256"
    try:
        digest = digest_path.read_bytes()
        if digest == hashlib.sha256(path.read_bytes()).digest():
            return path
    except OSError:
        return None
    for damaged in (path, digest_path):
        with contextlib.suppress(OSError):
            damaged.unlink()
    return None


def store(cache: pathlib.Path, key: str, data: bytes) -> pathlib.Path:
    """Keep an object under `key`; returns its path."""
    path = cache / f"{key}.so"
    _write(path, data)
    _write(cache / f"{key}.sha256", hashlib.sha256(data).digest())
    return path


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
