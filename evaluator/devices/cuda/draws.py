"""Random numbers drawn on the device, where arrays of gigabytes are drawn in milliseconds. Needs CuPy."""

from typing import Any

import cupy as cp
import numpy as np


class CupySource:
    """Philox streams of CuPy: equal arguments give equal arrays, which are not those of NumPy's streams."""

    @property
    def xp(self) -> Any:
        return cp

    def generator(self, seed: int, index: int, block: int) -> "_Generator":
        mixed = np.random.SeedSequence([seed, index, block]).generate_state(1, np.uint64)[0]
        return _Generator(int(mixed))


class _Generator:
    """The methods of `numpy.random.Generator` that inputs and cases use."""

    def __init__(self, seed: int):
        self._generator = cp.random.Generator(cp.random.Philox4x3210(seed))

    def random(self, size: tuple[int, ...], dtype: Any = np.float32) -> cp.ndarray:
        return self._generator.random(size, dtype=dtype)

    def standard_normal(self, size: tuple[int, ...], dtype: Any = np.float32) -> cp.ndarray:
        return self._generator.standard_normal(size, dtype=dtype)

    def integers(self, low: int, high: int, size: tuple[int, ...]) -> cp.ndarray:
        return self._generator.integers(low, high, size)
