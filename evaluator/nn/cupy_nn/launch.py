"""Launching our own CUDA kernels on CuPy's current stream: compiled once per text, capturable in a CUDA graph."""

import functools
from collections.abc import Sequence

import cupy as cp


def launch(source: str, name: str, grid: tuple[int, ...], block: tuple[int, ...], arguments: Sequence[object]) -> None:
    """Runs kernel `name` of the CUDA text `source`.

    Arguments are arrays (passed by their address, whatever their strides), ints for integer parameters and
    `numpy.float32` for float parameters. Nothing is synchronised or copied to the device.
    """
    _kernel(source, name)(grid, block, tuple(arguments))


@functools.cache
def _kernel(source: str, name: str) -> cp.RawKernel:
    return cp.RawKernel(source, name, options=("-std=c++17",))
