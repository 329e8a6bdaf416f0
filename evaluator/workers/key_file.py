"""The key that a learner and an evaluator on another host share: whoever has it may have programs judged."""

import os
import secrets
import stat
from pathlib import Path

from evaluator.workers.pool import PoolError

VARIABLE = "CUDAL1_POOL_KEY"  # the key itself, in place of a file
_LEAST_BYTES = 16


def load(path: str | Path | None) -> bytes:
    """The key in a file, or in $CUDAL1_POOL_KEY where `path` is empty. PoolError: none, short, or open to others."""
    if path:
        return _checked(_read(Path(path)), str(path))
    if VARIABLE not in os.environ:
        raise PoolError(
            f"no key: give --key-file (config.pool.key_file), or set ${VARIABLE}; `python -m evaluator serve"
            " --key-file=PATH` makes one"
        )
    return _checked(os.environ[VARIABLE], f"${VARIABLE}")


def load_or_create(path: str | Path | None) -> tuple[bytes, bool]:
    """`load`, and whether the file was made, readable by its owner alone, because there was none."""
    if not path or Path(path).exists():
        return load(path), False
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    return load(path), True


def _read(path: Path) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise PoolError(f"key file {path} has mode {mode:o}, so that others may use it: chmod 600 {path}")
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise PoolError(f"key file {path} cannot be read ({error}): copy it from where the evaluator runs") from error


def _checked(text: str, where: str) -> bytes:
    key = text.strip().encode()
    if len(key) < _LEAST_BYTES:
        raise PoolError(f"the key in {where} has {len(key)} characters, expected {_LEAST_BYTES} or more")
    return key
