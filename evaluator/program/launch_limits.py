"""Launch limits that CUDA states for every device of compute capability 3.0 to 12.x. Imports nothing, as dtypes.py."""

MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_BLOCK = (1024, 1024, 64)
MAX_BLOCK_THREADS = 1024
DEFAULT_DYNAMIC_SHARED_BYTES = 48 * 1024  # more needs kernel.max_dynamic_shared_size_bytes
MAX_SHARED_BYTES = 227 * 1024  # of compute capability 9.0, the largest there is
