"""Files that are never seen half written."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Writes the joined `parts`, so that a reader, or a kill, sees the old text or the new one and never a part.

    OSError: what was there before still is.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
