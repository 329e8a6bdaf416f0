"""One learner made of several processes, as on a TPU pod: the first leads, the others follow it.

A program that spans processes must be started by all of them, with the same arguments and in the same order. The leader
runs a stage as if it were alone; what it does on devices it announces first, and the followers, who neither judge nor
keep records, do the same. So a stage is written once, for one process.
"""

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

Action = Callable[..., Any]

_END = "end"


def start(coordinator: str, count: int, number: int) -> None:
    """Joins the `count` processes of a run, before anything else touches JAX. `coordinator`: host:port of process 0.

    `coordinator` "": where the platform tells its processes apart by itself (TPU pods, Slurm). RuntimeError where the
    coordinator is not reached.
    """
    if coordinator:
        jax.distributed.initialize(coordinator_address=coordinator, num_processes=count, process_id=number)
    else:
        jax.distributed.initialize()


def leads() -> bool:
    """Whether this process runs the stage: the first of them, or the only one."""
    return jax.process_index() == 0


def announced(name: str, action: Action) -> Action:
    """For the leader: `action`, which the followers do too, by its `name` and with equal arguments."""
    if jax.process_count() == 1:
        return action

    def together(*arguments: Any) -> Any:
        _send((name, arguments))
        return action(*arguments)

    return together


def follow(actions: Mapping[str, Action]) -> None:
    """For the others: does what the leader announces until it says that the run has ended."""
    while True:
        name, arguments = _receive()
        if name == _END:
            return
        actions[name](*arguments)


def dismiss() -> None:
    """For the leader, at the end: the followers return."""
    if jax.process_count() > 1:
        _send((_END, ()))


def _send(message: tuple[str, tuple]) -> None:
    _broadcast(np.frombuffer(pickle.dumps(message), np.uint8))


def _receive() -> tuple[str, tuple]:
    return pickle.loads(_broadcast(None).tobytes())  # from the same job's leader


def _broadcast(payload: np.ndarray | None) -> np.ndarray:
    """The leader's bytes [n], everywhere: their number first, since all processes must know the shape."""
    size = int(multihost_utils.broadcast_one_to_all(np.int32(0 if payload is None else len(payload))))
    return np.asarray(multihost_utils.broadcast_one_to_all(np.zeros(size, np.uint8) if payload is None else payload))
