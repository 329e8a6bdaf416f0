"""A trace of XLA's work, for TensorBoard's profile plugin or Perfetto."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def traced(folder: str, wanted: bool) -> Iterator[None]:
    """Write a `jax.profiler` trace of what happens inside to `folder`, where there is one and it is `wanted`."""
    if folder and wanted:
        with jax.profiler.trace(folder):
            yield
    else:
        yield
