"""CUDA's own headers, which NVRTC 13.3 and newer carry and write out once."""

import functools
import tempfile
from pathlib import Path

from evaluator import _core
from evaluator.devices import object_cache
from evaluator.devices.cuda.toolkit import Toolkit


@functools.cache
def bundled(toolkit: Toolkit) -> tuple[str, ...]:
    """Include folders with the headers that this NVRTC carries, written out if need be; empty where it has none."""
    nvrtc = _core.Nvrtc(toolkit.nvrtc)
    major, minor = nvrtc.version()
    if (major, minor) < (13, 3):
        return ()
    folder = object_cache.folder("cuda") / f"headers-{major}.{minor}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as name:
            made = Path(name) / "headers"
            if not nvrtc.install_headers(str(made)):
                return ()
            _publish(made, folder)
    return (str(folder), str(folder / "cccl"))


def _publish(made: Path, folder: Path) -> None:
    """Whole or not at all; where another process was first, its folder stays."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.exists():
            raise
