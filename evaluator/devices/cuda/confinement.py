"""What the process that has the GPU gives up once its context exists: other programs, sockets, writing elsewhere.

The driver, CuPy and their libraries go on reading what they like, mapping code and starting threads.
"""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Sequence

from evaluator import _core, confinement
from evaluator.devices import object_cache
from evaluator.records import LAYERS

_DEVICES = ("nvidia*", "dxg")  # of the driver; the second is Windows' for Linux guests
_STREAMS = ("/dev/null", "/dev/zero")


def confine(layers: Sequence[str] = LAYERS) -> tuple[str, ...]:
    """Confines this process for good and returns the layers that are not in force.

    Landlock holds for the calling thread and those it starts from now on, seccomp for all. RuntimeError where the
    kernel refuses, with the field that leaves a layer out.
    """
    folders = [_temporary_folder(), *_caches()]
    try:
        found = _core.confine(
            "gpu",
            readable=["/"],
            writable=[*map(str, folders), *_devices(), *_STREAMS],
            layers=confinement.checked(layers),
        )
    except RuntimeError as error:
        raise RuntimeError(f"{error}; Limits.gpu_confinement can leave a layer out, seen {list(layers)}") from error
    missing = found["missing"]
    assert isinstance(missing, list)
    return tuple(missing)


def _temporary_folder() -> pathlib.Path:
    """Where this process puts temporary files from now on: /tmp is everybody's."""
    folder = object_cache.folder("gpu") / "temporary"
    folder.mkdir(exist_ok=True, mode=0o700)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


def _caches() -> list[pathlib.Path]:
    """Folders that CuPy and the driver keep compiled kernels in, made if need be: a rule names what is there."""
    home = pathlib.Path.home()
    cupy = pathlib.Path(os.environ.get("CUPY_CACHE_DIR") or home / ".cupy" / "kernel_cache")
    driver = pathlib.Path(os.environ.get("CUDA_CACHE_PATH") or home / ".nv" / "ComputeCache")
    for folder in (cupy, driver):
        with contextlib.suppress(OSError):  # a home that cannot be written to: they do without a cache, as ever
            folder.mkdir(parents=True, exist_ok=True)
    return [folder for folder in (cupy, driver) if folder.is_dir()]


def _devices() -> list[str]:
    return sorted(str(path) for pattern in _DEVICES for path in pathlib.Path("/dev").glob(pattern))
