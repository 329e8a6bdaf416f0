"""CuPy arrays over memory that the executor owns."""

from typing import Any

import cupy as cp
import numpy as np

from evaluator.program.dtypes import ITEM_BYTES


def numpy_dtype(name: str) -> np.dtype:
    """CuPy has no bfloat16: such arrays are looked at as their bits."""
    return np.dtype(np.uint16 if name == "bfloat16" else name)


def array(address: int, shape: tuple[int, ...], dtype: np.dtype, owner: Any) -> cp.ndarray:
    """A C-contiguous array at `address`; `owner` is kept alive by it."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if nbytes == 0:
        return cp.empty(shape, dtype)
    memory = cp.cuda.UnownedMemory(address, nbytes, owner)
    return cp.ndarray(shape, dtype, cp.cuda.MemoryPointer(memory, 0))


def bits(address: int, count: int, dtype: str, owner: Any) -> cp.ndarray:
    """`count` elements as unsigned integers of their width, flat."""
    return array(address, (count,), np.dtype(f"u{ITEM_BYTES[dtype]}"), owner)
