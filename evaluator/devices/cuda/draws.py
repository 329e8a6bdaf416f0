"""Random numbers drawn on the device, as fast as it can write them. Needs CuPy, whose own take ten times as long."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

_SOURCE = Path(__file__).with_name("draws.cu")
_THREADS = 256
_MOST_BLOCKS = 2048


class CupySource:
    """Philox streams on the device: equal arguments give equal arrays, which are not those of NumPy's streams."""

    @property
    def xp(self) -> Any:
        return cp

    def generator(self, seed: int, index: int, block: int) -> "_Generator":
        return _Generator(int(np.random.SeedSequence([seed, index, block]).generate_state(1, np.uint64)[0]))


class _Generator:
    """The methods of `numpy.random.Generator` that inputs and cases use; every call draws other numbers."""

    def __init__(self, key: int):
        self._key = np.uint64(key)
        self._calls = 0

    def random(self, size: tuple[int, ...], dtype: Any) -> cp.ndarray:
        return self._float32("uniform", size, dtype)

    def standard_normal(self, size: tuple[int, ...], dtype: Any) -> cp.ndarray:
        return self._float32("normal", size, dtype)

    def integers(self, low: int, high: int, size: tuple[int, ...]) -> cp.ndarray:
        """int64 from `low` to `high` - 1; ValueError where these are more than 2^32 - 1 or none."""
        if not 0 < high - low < 2**32:
            raise ValueError(f"integers are drawn from 1 to 2^32 - 1 values, seen the range from {low} to {high}")
        return self._drawn("integers", size, np.int64, np.int64(low), np.uint32(high - low))

    def _float32(self, name: str, size: tuple[int, ...], dtype: Any) -> cp.ndarray:
        if np.dtype(dtype) != np.float32:
            raise TypeError(f"floats are drawn as float32 on a GPU, not as {np.dtype(dtype)}")
        return self._drawn(name, size, np.float32)

    def _drawn(self, name: str, size: tuple[int, ...], dtype: Any, *arguments: Any) -> cp.ndarray:
        out = cp.empty(size, dtype)
        if out.size:
            blocks = min(_MOST_BLOCKS, -(-out.size // (4 * _THREADS)))
            call = np.uint32(self._calls)
            _kernel(name)((blocks,), (_THREADS,), (out, np.int64(out.size), self._key, call, *arguments))
        self._calls += 1
        return out


def moved(inputs: Sequence[cp.ndarray], draw: int) -> list[cp.ndarray]:
    """Each float32 of `inputs` one spacing up or down, as `draw` and its place say; other types as they are."""
    return [_moved(x, number, draw) if x.dtype == np.float32 else x for number, x in enumerate(inputs)]


def _moved(x: cp.ndarray, number: int, draw: int) -> cp.ndarray:
    out = cp.empty(x.shape, x.dtype)
    if x.size:
        blocks = min(_MOST_BLOCKS, -(-x.size // (4 * _THREADS)))
        key = np.uint64(np.random.SeedSequence([draw, number]).generate_state(1, np.uint64)[0])
        _kernel("moved")((blocks,), (_THREADS,), (cp.ascontiguousarray(x), out, np.int64(x.size), key))
    return out


@functools.cache
def _module() -> cp.RawModule:
    return cp.RawModule(code=_SOURCE.read_text(), options=("-std=c++17",))


@functools.cache
def _kernel(name: str) -> cp.RawKernel:
    return _module().get_function(name)
