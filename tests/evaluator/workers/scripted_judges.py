"""What workers run in tests of the pools: a judge that obeys the text of its job."""

import os
import signal
import time
from pathlib import Path

from evaluator.judge.child import Child
from evaluator.judge.findings import Findings
from evaluator.records import Mode


class Obedient:
    """die: killed. hang: never answers. once PATH: dies unless PATH exists. sleep S: answers late. await PATH: answers
    when PATH exists.

    child: starts a process, whose id is the last seed. meet FOLDER: waits for another worker there; the GPUs that it
    sees are the message. A verdict's first two seeds are the worker's process and the seed of its judge.
    """

    def __init__(self, device="cpu", mode="quick", seed=0, limits=None, fails=False, compilers=1, pauses=None):
        if fails:
            os._exit(7)
        self.device, self.mode, self.seed = device, Mode(mode), seed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def judge(self, job):
        verb, _, rest = job.text.partition(" ")
        if verb == "die" or (verb == "once" and not Path(rest).exists()):
            if rest:
                Path(rest).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "hang":
            time.sleep(600)
        if verb == "await":
            while not Path(rest).exists():
                time.sleep(0.01)
        if verb == "sleep":
            time.sleep(float(rest))
        found = Findings(task=job.task.id, size=job.size, device=self.device, mode=self.mode)
        found.seeds = [os.getpid(), self.seed]
        if verb == "child":
            self.child = Child(idle)
            found.seeds.append(self.child.pid)
        if verb == "meet":
            (Path(rest) / str(os.getpid())).touch()
            while len(list(Path(rest).iterdir())) < 2:
                time.sleep(0.01)
            found.notes.append(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        return found.verdict(None)


def idle(pipe):
    pipe.recv()
