"""A judge whose process, or all of whose children, are killed once when it begins the rung that the program names."""

import contextlib
import json
import os
import pathlib
import re
import signal

from evaluator.judge.findings import Findings
from evaluator.judge.ladder import Judge

_ORDER = re.compile(r"# kill (?P<whom>judge|children) at (?P<rung>\w+) unless (?P<path>\S+)")


class DoomedJudge(Judge):
    """Obeys a comment `# kill judge at timing unless PATH`; the ids of its children are in the file PATH then."""

    def judge(self, job):
        order = _ORDER.search(job.text)
        with killing(**order.groupdict()) if order else contextlib.nullcontext():
            return super().judge(job)


@contextlib.contextmanager
def killing(whom, rung, path):
    enter = Findings.rung

    def doomed(self, reached):
        if reached == rung and not os.path.exists(path):
            pids = descendants(os.getpid())
            pathlib.Path(path).write_text(json.dumps(pids))
            for pid in [os.getpid()] if whom == "judge" else pids:
                os.kill(pid, signal.SIGKILL)
        return enter(self, reached)

    Findings.rung = doomed
    try:
        yield
    finally:
        Findings.rung = enter


def descendants(pid):
    """Ids of the processes below one, in the order of their depth."""
    found = []
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (thread / "children").read_text().split())
    return found + [below for child in found for below in (descendants(child) if alive(child) else [])]


def alive(pid):
    """Whether a process still does anything: where nobody collects orphans, one that has ended stays as a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
