"""The baselines there are, what each needs here, and the versions that its times depend on."""

import ctypes
import functools
import importlib.metadata
import importlib.util
import re

from evaluator.devices.cuda import machine
from evaluator.records import EVALUATOR_VERSION

GRAPH, XLA = "graph", "xla"
TORCH, TORCH_COMPILE, TORCH_COMPILE_REDUCE_OVERHEAD = "torch", "torch_compile", "torch_compile_reduce_overhead"
BASELINES = (GRAPH, XLA, TORCH, TORCH_COMPILE, TORCH_COMPILE_REDUCE_OVERHEAD)

_DISTRIBUTIONS = {"cupy": r"cupy(-cuda\d+x?)?", "cudnn": r"nvidia-cudnn-cu\d+"}  # where a name alone does not do
_NVML, _VERSION_BYTES = "libnvidia-ml.so.1", 80


def missing(baseline: str, device: str) -> str | None:
    """Why a baseline cannot be measured on a device here, with the cure; None where it can. Imports no library."""
    if baseline == GRAPH:
        return None if device == "cuda" else "graph is the reference recorded on a GPU: use --device=cuda"
    if baseline == XLA:
        return _missing_jax_on_cuda() if device == "cuda" else None
    if importlib.util.find_spec("torch") is None:
        return f"{baseline} needs PyTorch: pip install 'cudal1-jax[torch]'"
    return None


def versions(baseline: str, device: str) -> dict[str, str]:
    """Name -> version of everything installed that the times of a baseline depend on. Imports no library."""
    names = {GRAPH: ("cupy",), XLA: ("jax", "jaxlib")}.get(baseline, ("torch",))
    found = {"evaluator": EVALUATOR_VERSION} | {name: _version(name) for name in names}
    if device == "cuda":
        found |= {"cudnn": _version("cudnn"), "driver": _driver()}
    return found


@functools.cache  # reading every installed package's metadata takes tens of milliseconds
def _version(name: str) -> str:
    pattern = re.compile(_DISTRIBUTIONS.get(name, name))
    for distribution in importlib.metadata.distributions():
        if pattern.fullmatch((distribution.metadata["Name"] or "").lower()):
            return distribution.version
    return "unknown"


def _missing_jax_on_cuda() -> str | None:
    plugins = [f"jax_cuda{major}_plugin" for major in (12, 13)]
    if any(importlib.util.find_spec(name) for name in plugins):
        return None
    return "xla needs JAX with CUDA: pip install 'cudal1-jax[cuda13]' (cuda12 for a driver older than CUDA 13)"


@functools.cache
def _driver() -> str:
    """The driver's own version; without NVML the newest CUDA release that it knows."""
    try:
        library = ctypes.CDLL(_NVML)
        text = ctypes.create_string_buffer(_VERSION_BYTES)
        if library.nvmlInit_v2() == 0 and library.nvmlSystemGetDriverVersion(text, _VERSION_BYTES) == 0:
            return text.value.decode(errors="replace")
    except (OSError, AttributeError):
        pass
    driver = machine.driver()
    return "unknown" if driver is None else f"CUDA {driver.cuda[0]}.{driver.cuda[1]}"
