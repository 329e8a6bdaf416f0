"""A verified program as a function of the arrays that NumPy, PyTorch and CuPy have, shared through DLPack."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.calling.arguments import Form, in_order
from evaluator.calling.emulated import EmulatedProgram
from evaluator.calling.preparation import Preparation
from evaluator.calling.queued import ForeignStream, QueuedProgram
from evaluator.calling.source import Source, find
from evaluator.devices.cuda import machine
from evaluator.records import Limits, Verdict
from evaluator.tasks.task import Task

_CPU, _CUDA = 1, 2  # DLPack's kinds of device
_DEVICES = {_CPU: "cpu", _CUDA: "cuda"}


class Loaded:
    """One program, called with the task's inputs, then its parameters, by position or by name.

    Arrays are contiguous, all of one library, on the device that it was loaded for: NumPy arrays and PyTorch tensors on
    `cpu`, CuPy arrays and PyTorch tensors on `cuda`. Results are of the same library: one array, or a tuple. On `cuda`
    nothing is copied and nothing waited for: kernels are queued on the library's current stream. The program is traced
    and compiled at the first call of given shapes.
    """

    def __init__(self, source: Source, limits: Limits | None = None):
        self._source = source
        self._preparation = Preparation(source, limits)

    def __repr__(self) -> str:
        return f"Loaded({self._source.name!r}, device={self._source.device!r})"

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Raises TypeError or ValueError for arrays that it does not take, Unverified for shapes and dtypes that the
        verdict is not about, ProgramFault for what a compiler finds, RuntimeError for what goes wrong while it runs."""
        given = in_order(self._source, arrays, named)
        self._check_places(given)
        torch = sys.modules.get("torch")
        is_torch = torch is not None and all(isinstance(array, torch.Tensor) for array in given)
        run = self._on_host if self._source.device == "cpu" else self._on_cuda
        results = run(given, torch if is_torch else None)
        return results[0] if len(results) == 1 else tuple(results)

    def _on_host(self, given: Sequence[Any], torch: Any) -> list[Any]:
        arrays = [self._contiguous(number, np.from_dlpack(array)) for number, array in enumerate(given)]
        prepared = self._preparation.of(_forms(arrays))
        assert isinstance(prepared, EmulatedProgram)
        results = [np.empty(shape, dtype) for shape, dtype in prepared.results]
        prepared.run([_bytes(array) for array in arrays], [_bytes(array) for array in results])
        return results if torch is None else [torch.from_dlpack(array) for array in results]

    def _on_cuda(self, given: Sequence[Any], torch: Any) -> list[Any]:
        try:
            import cupy as cp
        except ImportError as error:
            raise ImportError(f"calls on cuda need CuPy ({error}): install the extra cuda12 or cuda13") from error
        device = given[0].__dlpack_device__()[1]
        with cp.cuda.Device(device), _stream(device, torch) as stream:
            shared = [array if isinstance(array, cp.ndarray) else cp.from_dlpack(array) for array in given]
            arrays = [self._contiguous(number, array) for number, array in enumerate(shared)]
            prepared = self._preparation.of(_forms(arrays))
            assert isinstance(prepared, QueuedProgram)
            results = [cp.empty(shape, dtype) for shape, dtype in prepared.results]
            if prepared.needs_memory and stream.is_capturing():
                message = "takes memory that a recorded graph would not keep: call it outside of the recording"
                raise RuntimeError(f"{self._source.name} {message}")
            # Given back to CuPy's pool of this stream, where only what is queued behind these steps gets it.
            scratch = [cp.empty(nbytes, cp.uint8) for nbytes in [prepared.placement.scratch_bytes] if nbytes]
            prepared.queue(stream.ptr, [array.data.ptr for array in (*arrays, *results, *scratch)])
            return results if torch is None else [torch.from_dlpack(array) for array in results]

    def _check_places(self, given: Sequence[Any]) -> None:
        wanted, places = self._source.device, set()
        for array, name in zip(given, self._source.names, strict=True):
            if not hasattr(array, "__dlpack_device__"):
                kind = type(array).__name__
                raise TypeError(f"{self._source.name}: {name} is a {kind}; pass arrays of NumPy, CuPy or PyTorch")
            kind, number = array.__dlpack_device__()
            if _DEVICES.get(int(kind)) != wanted:
                seen = _DEVICES.get(int(kind), f"a device of DLPack's kind {int(kind)}")
                raise ValueError(f"{self._source.name} was loaded for {wanted}, and {name} lies on {seen}")
            places.add(int(number))
        if len(places) > 1:
            raise ValueError(f"{self._source.name}: arrays lie on devices {sorted(places)}; move them to one")

    def _contiguous(self, number: int, array: Any) -> Any:
        if not array.flags.c_contiguous:
            name = self._source.names[number]
            raise ValueError(f"{self._source.name}: {name} is not contiguous; pass a contiguous copy of it")
        return array


def load(
    program: str | Path,
    *,
    task: str | Task | None = None,
    device: str | None = None,
    verdict: str | Path | Verdict | None = None,
    allow_unverified: bool = False,
    limits: Limits | None = None,
) -> Loaded:
    """The program as a function of NumPy, CuPy or PyTorch arrays; see `Loaded`. For JAX arrays there is `jax_call`.

    `device`: "cpu" or "cuda"; None: `cuda` where this machine has an NVIDIA GPU. Raises what `source.find` raises.
    """
    chosen = device if device is not None else _default_device()
    source = find(program, task=task, device=chosen, verdict=verdict, allow_unverified=allow_unverified)
    return Loaded(source, limits)


def _default_device() -> str:
    driver = machine.driver()
    return "cuda" if driver is not None and driver.gpus else "cpu"


def _stream(device: int, torch: Any) -> Any:
    """The library's current stream, as one of CuPy's."""
    import cupy as cp

    if torch is None:
        return cp.cuda.get_current_stream()
    return cp.cuda.Stream.from_external(ForeignStream(torch.cuda.current_stream(device).cuda_stream))


def _forms(arrays: Sequence[Any]) -> tuple[Form, ...]:
    return tuple((array.shape, array.dtype) for array in arrays)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
