"""The process that has the GPU: it examines one program at a time, and ends once a program has broken its context, or
memory has run out."""

import contextlib
import os
import time
from multiprocessing.connection import Connection

from evaluator import confinement
from evaluator.devices.cuda import confinement as gpu_confinement
from evaluator.devices.cuda import faults
from evaluator.judge.examination import Examination, examine
from evaluator.judge.findings import Findings
from evaluator.judge.knock_out import DeviceLost
from evaluator.records import Limits, Outcome, ProgramFault, Rung

_BEAT_S = 1.0


def main(pipe: Connection) -> None:
    """Receives the limits and the device's number; answers questions until EOFError.

    ("outputs", task, size) -> ("outputs", specs). ("examine", findings, examination) -> ("rung", rung) at every rung
    and about every second, then ("done", findings, fault or None, whether this process ends). What goes wrong here is
    ("error", message, whether this process ends), or ("no room", message) where memory ran out and this process ends.
    """
    with contextlib.suppress(Exception):  # what is wrong is said when the workbench is made
        _workbench_class()  # most of a start, which a process in reserve has behind it
    limits, ordinal = pipe.recv()
    try:
        bench = _bench(limits, ordinal)
    except Exception as error:
        pipe.send(("error", f"{type(error).__name__}: {error}", True))
        return
    pipe.send(("ready", bench.device.architecture))
    while True:
        question, *payload = pipe.recv()
        try:
            if question == "outputs":
                task, size = payload
                pipe.send(("outputs", bench.outputs(task, size)))
            else:
                _examine(pipe, bench, *payload)
        except Exception as error:  # a reference may raise anything; a broken context makes every call raise
            broken = not faults.survived(bench.device)
            if isinstance(error, MemoryError) and not broken:
                pipe.send(("no room", f"{type(error).__name__}: {error} {bench.memory_in_use()}"))
                return  # the next process begins with all that this one took
            pipe.send(("error", f"{type(error).__name__}: {error}", broken))
            if broken:
                os._exit(0)  # nothing that would touch the context runs
        bench.tidy()  # here, where no error holds what it had taken


def _examine(pipe: Connection, bench, found: Findings, exam: Examination) -> None:
    told = _Telling(pipe, found)
    bench.beat = told.beat
    fault = None
    try:
        examine(bench, told, exam)
    except ProgramFault as error:
        fault = error.fault
        # While `error` lives, so do the buffers of a kernel that may still run: giving them back would wait for it.
        if fault.outcome is Outcome.TIMEOUT or not faults.survived(bench.device):
            pipe.send(("done", told.plain(), fault, True))
            os._exit(0)
    except DeviceLost:  # here as well
        pipe.send(("done", told.plain(), None, True))
        os._exit(0)
    pipe.send(("done", told.plain(), fault, False))


class _Telling(Findings):
    """Findings that tell the parent which rung is being climbed, lest it be lost with this process."""

    def __init__(self, pipe: Connection, found: Findings):
        super().__init__(**vars(found))
        self._pipe = pipe
        self._told_s = 0.0

    def rung(self, rung: Rung):
        self._tell(rung)
        return super().rung(rung)

    def beat(self) -> None:
        """A sign of life, once a second at most."""
        if time.monotonic() - self._told_s > _BEAT_S:
            self._tell(self.current)

    def plain(self) -> Findings:
        return Findings(**{name: value for name, value in vars(self).items() if not name.startswith("_")})

    def _tell(self, rung: Rung) -> None:
        self._told_s = time.monotonic()
        self._pipe.send(("rung", rung))


def _mute() -> None:
    """What kernels print is no evidence, and could look like a verdict: it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _bench(limits: Limits, ordinal: int):
    """The workbench, in a process that from then on starts nothing, opens no socket and writes to its caches alone."""
    _mute()
    bench = _workbench_class()(limits, ordinal)
    lacking = gpu_confinement.confine(limits.gpu_confinement)  # the context exists: what made it is no longer needed
    confinement.warn("the process that has the GPU", lacking)
    return bench


def _workbench_class():
    from evaluator.judge.cuda_workbench import CudaWorkbench  # needs CuPy, which the parent may lack

    return CudaWorkbench
