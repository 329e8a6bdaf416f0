"""Comparing on the device: errors of outputs, elements that were never written, bytes that changed. Needs CuPy."""

import dataclasses
import functools
import math
from pathlib import Path

import cupy as cp
import numpy as np

from evaluator.devices.cuda import error_sums
from evaluator.devices.cuda.error_sums import Errors

SEALED = 16  # elements of an output, looked at after each timed replay
_THREADS = 256
_MOST_BLOCKS = 1024
_SOURCE = Path(__file__).with_name("compare.cu")
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "__half",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


@dataclasses.dataclass(frozen=True)
class Comparison(Errors):
    """As `evaluator._core.Comparison`, which says what each figure is."""

    scale: float
    worst_seen: float
    worst_expected: float
    digest: int  # of the bits of the exact values


def compare(seen: cp.ndarray, exact: cp.ndarray, scale: float = 0.0) -> Comparison:
    """Errors of an output against exact values of the same shape, both on the device; see csrc/judging/compare.hpp.

    `exact`: float64, float32 as it is, or another dtype, of which a copy in float64 is made. `scale`: of the exact
    values, where it is known from an earlier comparison; 0: they are read twice.
    """
    wide = exact.dtype if exact.dtype == cp.float32 else cp.float64
    seen, exact = cp.ascontiguousarray(seen), cp.ascontiguousarray(exact, dtype=wide)
    count = seen.size
    if count == 0:
        nothing = error_sums.Errors(0.0, 0.0, 0.0, 0.0, 0, -1)
        return Comparison(**vars(nothing), scale=error_sums.smallest(), worst_seen=0.0, worst_expected=0.0, digest=0)
    largest = float(np.finfo(seen.dtype).max) if seen.dtype.kind == "f" else math.inf
    scale = scale or _scale(exact, largest)
    blocks = _blocks(count)
    sums, worst, digests = cp.empty((blocks, 6), cp.float64), cp.empty(blocks, cp.int64), cp.empty(blocks, cp.uint64)
    kernel = _kernel(f"error_sums<{_C_TYPES[seen.dtype.name]}, {_C_TYPES[exact.dtype.name]}>")
    limits = np.float64(largest), np.float64(1 / scale)
    kernel((blocks,), (_THREADS,), (seen, exact, count, *limits, sums, worst, digests))
    errors = error_sums.combined(cp.asnumpy(sums), cp.asnumpy(worst), count)
    return Comparison(
        **vars(errors),
        scale=scale,
        worst_seen=float(seen.reshape(-1)[errors.worst_index]),
        worst_expected=float(exact.reshape(-1)[errors.worst_index]),
        digest=int(cp.asnumpy(digests).sum()),
    )


def digest(exact: cp.ndarray) -> int:
    """That of a comparison with these exact values."""
    return compare(exact, exact, 1.0).digest


def count_equal(bits: cp.ndarray, word: np.ndarray) -> int:
    """How many elements of unsigned integers are the given one."""
    if bits.size == 0:
        return 0
    blocks = _blocks(bits.size)
    sums = cp.empty(blocks, cp.float64)
    kernel = _kernel(f"equal_counts<{_WORDS[bits.dtype.itemsize]}>")
    kernel((blocks,), (_THREADS,), (bits, bits.size, word.reshape(-1)[0], sums))
    return int(cp.asnumpy(sums).sum())


def seal(bits: cp.ndarray, seed: int, word: np.ndarray) -> None:
    """Writes `word` to a few elements of unsigned integers, at least one, at places that only `seed` tells."""
    _kernel(f"seal<{_WORDS[bits.dtype.itemsize]}>")((1,), (SEALED,), (bits, bits.size, np.uint64(seed), word[0]))


def count_sealed(bits: cp.ndarray, seed: int, word: np.ndarray, left: cp.ndarray) -> None:
    """Adds to `left` [1] how many of the elements that `seal` wrote are unchanged; queued, not waited for."""
    arguments = (bits, bits.size, np.uint64(seed), word[0], left)
    _kernel(f"count_sealed<{_WORDS[bits.dtype.itemsize]}>")((1,), (SEALED,), arguments)


def count_changed(bits: cp.ndarray, byte: int, changed: cp.ndarray) -> None:
    """Adds to `changed` [1] how many of the bytes are not the given one; queued, not waited for."""
    if bits.size:
        blocks = _blocks(bits.size)
        _kernel("count_changed")((blocks,), (_THREADS,), (bits, bits.size, np.uint8(byte), changed))


def differs(one: cp.ndarray, other: cp.ndarray) -> bool:
    """Whether two arrays of equally many bytes differ in any."""
    if one.nbytes == 0:
        return False
    blocks = _blocks(one.nbytes // 16 + 1)
    sums = cp.empty(blocks, cp.float64)
    aligned = one.data.ptr % 16 == 0 and other.data.ptr % 16 == 0
    if not aligned:
        return bool((one.view(cp.uint8).reshape(-1) != other.view(cp.uint8).reshape(-1)).any())
    _kernel("different_bytes")((blocks,), (_THREADS,), (one, other, one.nbytes, sums))
    return bool(cp.asnumpy(sums).sum())


def _scale(exact: cp.ndarray, largest: float) -> float:
    """Root mean square of the exact values that the type holds, at least the smallest normal float."""
    blocks = _blocks(exact.size)
    sums = cp.empty((blocks, 2), cp.float64)
    kernel = _kernel(f"scale_sums<{_C_TYPES[exact.dtype.name]}>")
    kernel((blocks,), (_THREADS,), (exact, exact.size, np.float64(largest), sums))
    found = error_sums.scale(cp.asnumpy(sums))
    if found is not None:
        return found
    kept = cp.abs(exact)[cp.isfinite(exact) & (cp.abs(exact) <= largest)]  # squares left the range of float64
    top = float(kept.max())
    return top * math.sqrt(float(((kept / top) ** 2).mean()))


def _blocks(count: int) -> int:
    return max(1, min(_MOST_BLOCKS, -(-count // (4 * _THREADS))))


@functools.cache
def _module() -> cp.RawModule:
    half = "#include <cuda_fp16.h>\n"
    words = ("equal_counts", "seal", "count_sealed")
    names = ["different_bytes", "count_changed", *(f"{name}<{kind}>" for name in words for kind in _WORDS.values())]
    for exact in ("float", "double"):
        names += [f"scale_sums<{exact}>", *(f"error_sums<{kind}, {exact}>" for kind in _C_TYPES.values())]
    return cp.RawModule(code=half + _SOURCE.read_text(), options=("-std=c++17",), name_expressions=names)


@functools.cache
def _kernel(name: str) -> cp.RawKernel:
    return _module().get_function(name)
