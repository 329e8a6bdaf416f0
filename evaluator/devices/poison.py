"""What fills buffers before a run, so that what was left unwritten, or written beside them, shows."""

import ml_dtypes
import numpy as np

from evaluator.program.dtypes import FLOAT_DTYPES

FRACTION_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def poison(dtype: str, seed: int) -> np.ndarray:
    """One element that no honest computation leaves behind: a signalling NaN, an odd integer, an impossible bool.

    Arithmetic on the NaN makes it quiet, so an element that still holds it was never written. Integers have no such
    value: two runs with different poison tell an unwritten one from a coincidence.
    """
    generator = np.random.Generator(np.random.Philox(key=np.array([seed & (2**64 - 1), 0x505], np.uint64)))
    width = numpy_dtype(dtype).itemsize
    word = int(generator.integers(1, 2**63))
    if dtype in FLOAT_DTYPES:
        mantissa = FRACTION_BITS[dtype]
        exponent = (1 << (8 * width - 1 - mantissa)) - 1
        payload = word % ((1 << (mantissa - 1)) - 1) + 1  # not 0, quiet bit clear
        word = exponent << mantissa | payload
    elif dtype == "bool":
        word = 0x80 | word % 0x7F + 1
    word %= 1 << (8 * width)
    return np.frombuffer(word.to_bytes(width, "little"), dtype=f"u{width}")
