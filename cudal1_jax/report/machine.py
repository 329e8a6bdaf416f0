"""What this process takes of the machine, and what the machine can do: for metrics of memory and utilisation."""

import functools
import resource
import time

import jax
import jax.numpy as jnp

REPEATS = 5


def peak_memory() -> dict[str, float]:
    """Most bytes that this process has had so far: on the host, and on its fullest device where that tells."""
    peaks = {"memory/host_peak_bytes": 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    statistics = [device.memory_stats() or {} for device in jax.local_devices()]
    on_device = [found["peak_bytes_in_use"] for found in statistics if "peak_bytes_in_use" in found]
    if on_device:
        peaks["memory/device_peak_bytes"] = float(max(on_device))
    return peaks


@functools.cache
def matmul_flops_per_s(dtype: str) -> float:
    """The best measured rate of a product of square matrices on one device: what a utilisation is a share of.

    Measured once a process, within a second; float32 runs at JAX's default precision, as the learner does.
    """
    size = 1024 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((size, size), dtype)
    multiply = jax.jit(jnp.matmul)
    multiply(matrix, matrix).block_until_ready()
    best_s = float("inf")
    for _ in range(REPEATS):
        began_s = time.perf_counter()
        multiply(matrix, matrix).block_until_ready()
        best_s = min(best_s, time.perf_counter() - began_s)
    return 2 * size**3 / best_s
