"""What workers run in tests of the pool: judges that obey the text of their job."""

import os
import signal
import time
from pathlib import Path

from evaluator.judge.findings import Findings
from evaluator.records import Mode


def obedient(pipe):
    """die: killed. hang: never answers. once PATH: dies unless PATH exists. sleep S: answers late. else: ok."""
    pipe.recv()  # the options of a judge
    while True:
        job = pipe.recv()
        verb, _, rest = job.text.partition(" ")
        if verb == "die" or (verb == "once" and not Path(rest).exists()):
            if rest:
                Path(rest).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "hang":
            time.sleep(60)
        if verb == "sleep":
            time.sleep(float(rest))
        found = Findings(task=job.task.id, size=job.size, device="cpu", mode=Mode.QUICK, seeds=[os.getpid()])
        pipe.send(found.verdict(None))
