"""How a child process ended, and what it had used by then: enough to tell its own doing from somebody else's."""

import dataclasses
import os
import signal
import subprocess
import time

_POLL_S = 0.002
_CPU_SLACK_S = 0.2  # the kernel looks at the limit of CPU time at its clock's ticks


@dataclasses.dataclass(frozen=True)
class ProcessEnd:
    code: int  # exit code; negative: the signal that ended it
    cpu_s: float  # of the process and of the children that it waited for
    peak_bytes: int  # of memory, likewise the largest of them

    def killed_from_outside(self, cpu_limit_s: float = float("inf")) -> bool:
        """Whether somebody else killed it: a confined process cannot kill itself, and it had not used up its time."""
        return self.code == -signal.SIGKILL and self.cpu_s < cpu_limit_s - _CPU_SLACK_S


def await_end(process: subprocess.Popen, patience_s: float) -> ProcessEnd | None:
    """Waits for the end of a process that nobody has waited for; None where it does not come in time."""
    deadline = time.monotonic() + patience_s
    while process.returncode is None:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return ProcessEnd(process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss << 10)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_S)
    return ProcessEnd(process.returncode, float("nan"), 0)
