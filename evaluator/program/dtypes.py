"""Element types of arrays. Imports nothing: the tracer's child process reads it too, and must start fast."""

ITEM_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
FLOAT_DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool dtype."""
    if dtype == "bool":
        return 0, 1
    bits = 8 * ITEM_BYTES[dtype]
    return (0, 2**bits - 1) if dtype.startswith("uint") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
