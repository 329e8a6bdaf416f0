"""How many programs one worker traces and compiles at once, and how many it holds."""

import os

MOST_COMPILERS = 4  # more keep no GPU busier: each compiles several programs a second
READY = 8  # programs that may wait for a GPU, traced and compiled


def compilers(asked: int, device: str, workers: int) -> int:
    """Programs that each of `workers` on this machine traces and compiles at once; `asked` 0: a share of its cores.

    That is a quarter of them, `MOST_COMPILERS` at most, so that the reference's calls into the driver, which are timed,
    do not wait for a core. On `cpu` one: there the cores are the device.
    """
    if asked < 0:
        raise ValueError(f"seen {asked} compilers for each worker, expected at least 1, or 0 for a share of the cores")
    if asked:
        return asked
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST_COMPILERS, cores // (4 * workers))) if device == "cuda" else 1


def jobs(device: str, compilers: int) -> int:
    """Jobs that a worker holds: one on its GPU, one for each compiler, and those that are ready.

    On `cpu` as many as there are compilers, one unless asked otherwise: what compiles there slows what is timed.
    """
    return 1 + compilers + READY if device == "cuda" else compilers
