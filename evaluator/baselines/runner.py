"""What one baseline is to the process that measures it, and the two ways in which calls are timed."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

Array = Any  # numpy.ndarray or cupy.ndarray
Call = Callable[[], object]

_OURS_S = 300.0  # one call that takes longer is given up


@dataclasses.dataclass(frozen=True)
class Runner:
    """A baseline that is ready on its inputs."""

    outputs: Callable[[], Sequence[Array]]  # makes one call and gives what it computed
    time_us: Callable[[], float]  # makes one call, on a GPU with an emptied L2 cache
    clock: str  # "events" or "host"


def host_us(call: Call) -> float:
    """Wall microseconds of a call that returns when its outputs are there."""
    began_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - began_ns) / 1e3


def event_us(bench: Any, call: Call) -> float:
    """Microseconds between events around what `call` queues on the workbench's stream, the L2 cache emptied before."""
    bench.timer.start()
    call()
    bench.timer.stop()
    return bench.timer.collect(_OURS_S)[0]


def flushed_host_us(bench: Any, call: Call) -> float:
    """As `host_us`, the L2 cache emptied before: for a library that has streams of its own."""
    bench.timer.start()  # its flush is what is wanted; of its events no use is made
    bench.device.wait(_OURS_S)
    found_us = host_us(call)
    bench.timer.stop()
    bench.timer.collect(_OURS_S)
    return found_us
