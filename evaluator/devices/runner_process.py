"""One confined `emulator-runner`: started, commanded over a socket, measured and ended from outside."""

import contextlib
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Sequence

from evaluator import confinement
from evaluator.devices import faults, installed
from evaluator.devices.faults import Kind, Report
from evaluator.records import LAYERS, Outcome, ProgramFault, Rung, killed

_COMMAND = struct.Struct("<IIIIQ")
_RUN, _REPLAY, _STOP, _FORGET = 1, 2, 3, 4
_START_S = 30.0
_HEAP_BYTES = 1 << 30  # device malloc, packed panels of matrix products
_THREAD_BYTES = 512 << 20  # address space of one OS thread: stacks of 1,024 fibers, its own heap
_WALL_PER_CPU_SECOND = 8.0  # other work on the machine may take most of a core
_POLL_S = 0.1
_CPU_SLACK_S = 1.5  # the limit counts whole seconds, the last look at the clock is some time ago
ORDERS = {"forward": 0, "reverse": 1, "random": 2}


class RunnerProcess:
    """Owns the process and the shared memory. After a fault it is dead; nothing it held is reused."""

    def __init__(
        self,
        object_path: str,
        tape: bytes,
        shared_bytes: int,
        *,
        threads: int,
        static_shared_bytes: int,
        cpu_s: float,
        layers: Sequence[str] = LAYERS,
    ):
        arena = os.memfd_create("arena", os.MFD_CLOEXEC)
        tape_file = os.memfd_create("tape", os.MFD_CLOEXEC)
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket = here
        self._last_cpu_s, self._cpu_limit_s = 0.0, cpu_s
        try:
            os.ftruncate(arena, shared_bytes)
            self.memory = mmap.mmap(arena, shared_bytes)
            with open(tape_file, "wb", closefd=False) as file:
                file.write(tape)
            files = (there.fileno(), arena, tape_file)
            self._process = _start(*files, object_path, threads, static_shared_bytes, cpu_s, layers)
        except BaseException:
            here.close()
            raise
        finally:
            there.close()
            os.close(arena)
            os.close(tape_file)
        self.ready = self._expect(_START_S, Rung.LAUNCH)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._socket.fileno() >= 0

    def cpu_s(self) -> float:
        """CPU time of the process so far, read from its clock; the process has no part in it."""
        if self._process.returncode is None:
            with contextlib.suppress(OSError):  # it ended a moment ago
                self._last_cpu_s = time.clock_gettime((~self._process.pid << 3) | 2)
        return self._last_cpu_s

    def run(self, *, order: str, seed: int, guard: str, deadline_s: float, rung: Rung, judged: bool) -> Report:
        """One pass over the tape. `judged` restores the module's globals before it and compares them after it."""
        kind = _RUN if judged else _REPLAY
        command = _COMMAND.pack(faults.MAGIC, kind, ORDERS[order], guard == "left", seed & (2**64 - 1))
        return self._ask(command, deadline_s, rung)

    def forget(self, *, deadline_s: float, rung: Rung) -> Report:
        """Wipes what a replay could find of an earlier one outside the plan's buffers."""
        return self._ask(_COMMAND.pack(faults.MAGIC, _FORGET, 0, 0, 0), deadline_s, rung)

    def _ask(self, command: bytes, deadline_s: float, rung: Rung) -> Report:
        try:
            self._socket.sendall(command)
        except OSError:
            raise self._death(rung) from None
        return self._expect(deadline_s, rung)

    def close(self) -> None:
        """Ends the process. Safe to call twice."""
        self._socket.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _expect(self, deadline_s: float, rung: Rung) -> Report:
        """The next report; raises ProgramFault where it does not come in time or at all.

        The deadline is CPU time, so that a busy machine fails no program; wall time bounds what does not compute.
        """
        cpu_end = self.cpu_s() + deadline_s
        wall_end = time.monotonic() + deadline_s * _WALL_PER_CPU_SECOND
        data = b""
        while len(data) < faults.REPORT_BYTES:
            readable, _, _ = select.select([self._socket], [], [], min(_POLL_S, deadline_s))
            if not readable:
                if self._process.poll() is None and self.cpu_s() < cpu_end and time.monotonic() < wall_end:
                    continue
                self.close()
                raise ProgramFault(Outcome.TIMEOUT, rung, f"still running after {deadline_s:g} s")
            try:
                part = self._socket.recv(faults.REPORT_BYTES - len(data))
            except ConnectionError:
                part = b""
            if not part:
                raise self._death(rung)
            data += part
        report = faults.unpack(data)
        if report is None:
            self.close()
            raise ProgramFault(Outcome.CRASHED, rung, "the program wrote over its runner's reports")
        return report

    def _death(self, rung: Rung) -> ProgramFault:
        self._socket.close()
        try:
            code = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.close()
            code = self._process.returncode
        if code == -signal.SIGKILL and self._last_cpu_s < self._cpu_limit_s - _CPU_SLACK_S:
            # A confined program cannot send signals, so this is somebody else's doing.
            return killed(rung, "the program's process")
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return ProgramFault(Outcome.TIMEOUT, rung, "the program used up its CPU time")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ProgramFault(Outcome.CRASHED, rung, f"the program ended its own process ({how})")


def _start(
    control: int,
    arena: int,
    tape: int,
    object_path: str,
    threads: int,
    static_shared_bytes: int,
    cpu_s: float,
    layers: Sequence[str],
) -> subprocess.Popen:
    runner = str(installed.path("emulator-runner"))
    memory = _HEAP_BYTES + threads * _THREAD_BYTES
    command = [runner, *map(str, (control, arena, tape)), object_path, *map(str, (threads, memory, round(cpu_s)))]
    command.append(",".join(confinement.checked(layers)))
    # Static shared memory lies at a fixed distance from the thread pointer; glibc keeps this much room for it.
    # Its symbols are bound at once: the loader's memory is read-only when programs run. What the system itself writes
    # to its thread's memory (rseq) would be put back with the rest.
    tunables = f"glibc.rtld.optional_static_tls={static_shared_bytes + 4096}:glibc.pthread.rseq=0"
    environment = {"GLIBC_TUNABLES": tunables, "LD_BIND_NOW": "1", "LC_ALL": "C"}
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control, arena, tape),
        start_new_session=True,
    )


def is_fault(report: Report) -> bool:
    return report.kind not in (Kind.READY, Kind.DONE)
