"""Finding NVRTC and the CUDA headers: in this environment's wheels first, then in an installed toolkit."""

import dataclasses
import functools
import os
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluator import _core
from evaluator.records import Outcome, ProgramFault, Rung

# Newest first. Names of the library in the nvidia wheels, and of the folders with their headers.
_WHEEL_LIBRARIES = ("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
_WHEEL_HEADERS_13 = ("nvidia/cu13/include",)
_WHEEL_HEADERS_12 = (
    "nvidia/cuda_runtime/include",
    "nvidia/cuda_nvcc/include",  # crt/, which mma.h includes
    "nvidia/cuda_cccl/include",
)
_TOOLKIT_LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12")
_TOOLKIT_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_MARK = "cuda_fp16.h"  # a folder without it holds no device headers


@dataclasses.dataclass(frozen=True)
class Toolkit:
    """One NVRTC and the folders of headers that go with it."""

    nvrtc: str  # absolute path of libnvrtc
    headers: tuple[str, ...]  # include folders; none where NVRTC brings its own (13.3 and newer)


@functools.cache
def find() -> Toolkit:
    """The NVRTC that $CUDAL1_NVRTC names, else the wheels', else that of $CUDA_HOME, $CUDA_PATH or /usr/local/cuda.

    Raises ProgramFault `evaluator_error` where there is none.
    """
    named = os.environ.get("CUDAL1_NVRTC")
    if named and not Path(named).is_file():
        raise _missing(f"$CUDAL1_NVRTC names {named}, which is no file")
    library = Path(named) if named else next(_libraries(), None)
    if library is None:
        raise _missing("no libnvrtc.so.13 or libnvrtc.so.12 in this environment or under /usr/local/cuda")
    return _of(library)


def installed() -> list[Toolkit]:
    """Every NVRTC of this environment and machine, the one that `find` prefers first."""
    return list({tools.nvrtc: tools for tools in map(_of, _libraries())}.values())


def _of(library: Path) -> Toolkit:
    return Toolkit(nvrtc=str(library.resolve()), headers=tuple(_with_cccl(_headers(library))))


def _missing(seen: str) -> ProgramFault:
    cure = "install the cuda13 extra (pip install 'cudal1-jax[cuda13]') or name a libnvrtc in $CUDAL1_NVRTC"
    return ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, f"cannot compile for cuda: {seen}; {cure}")


def _site_packages() -> list[Path]:
    return [Path(path) for path in dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])]


def _toolkits() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob("cuda-1[23]*"), reverse=True)


def _libraries() -> Iterator[Path]:
    wheels = (site / name for name in _WHEEL_LIBRARIES for site in _site_packages())
    toolkits = (root / lib / name for root in _toolkits() for lib in _TOOLKIT_FOLDERS for name in _TOOLKIT_LIBRARIES)
    return (path for path in (*wheels, *toolkits) if path.is_file())


def _headers(library: Path) -> Iterable[Path]:
    """Folders with the headers of the library's own installation, then what wheels lack from a toolkit.

    NVRTC and headers of two releases do not mix.
    """
    beside = [above / "include" for above in library.resolve().parents[:4]]
    site = next((above.parent for above in library.resolve().parents if above.name == "nvidia"), None)
    names = _WHEEL_HEADERS_13 if "cu13" in library.resolve().parts else _WHEEL_HEADERS_12
    wheels = [site / name for name in names] if site else []
    release = _release_of(library)
    toolkits = (root / "include" for root in _toolkits())
    others = [folder for folder in toolkits if release and _release_in(folder) == release]
    folders = dict.fromkeys([*wheels, *beside, *others])
    return (folder for folder in folders if folder.is_dir() and _has_headers(folder))


def _release_of(library: Path) -> tuple[int, int] | None:
    try:
        return _core.Nvrtc(str(library)).version()
    except RuntimeError:  # no library at all: whoever compiles with it will say so
        return None


def _release_in(folder: Path) -> tuple[int, int] | None:
    """The CUDA release of a folder of headers."""
    try:
        found = re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text(errors="replace"))
    except OSError:
        return None
    return (int(found[1]) // 1000, int(found[1]) % 1000 // 10) if found else None


def _has_headers(folder: Path) -> bool:
    return any((folder / name).exists() for name in (_MARK, "crt", "cuda", "cccl"))


def _with_cccl(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        yield str(folder)
        if (folder / "cccl").is_dir():
            yield str(folder / "cccl")
