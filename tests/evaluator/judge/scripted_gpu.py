"""A child that speaks the protocol of `cuda_child` and stands for a GPU.

`main` does what the task's id tells it to; `obedient` what the program's lines `# gpu: VERB PATH` do: `log` appends the
job's seed and the program's last line to a file, `await` examines until a file exists, `once` is killed unless a file
exists, `breaks` loses the context.
"""

import os
import re
import signal
import time
from pathlib import Path

from evaluator.records import Fault, Outcome, Rung


def main(pipe):
    pipe.recv()
    pipe.send(("ready", 90))
    while True:
        question, *payload = pipe.recv()
        if question == "outputs":
            task, _ = payload
            if task.id == "dies":
                os._exit(1)
            if task.id == "has no room":
                pipe.send(("no room", "OutOfMemoryError: 8 GB; 1 of 150 are free"))
                return
            pipe.send(("error", "a reference failed", False) if task.id == "raises" else ("outputs", ((1,), task.id)))
            continue
        found, exam = payload
        how = exam.job.task.id
        if how == "dies before":
            os._exit(1)
        pipe.send(("rung", found.current))
        if how == "dies over the reference":
            os._exit(1)
        pipe.send(("rung", Rung.MEMORY_SAFETY))
        if how == "dies":
            os._exit(1)
        if how == "has no room":
            pipe.send(("no room", "OutOfMemoryError: 8 GB; 1 of 150 are free"))
            return
        if how == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "silent":
            time.sleep(60)
        fault = Fault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, "a stray access") if how == "breaks" else None
        found.peak_bytes = os.getpid()
        pipe.send(("done", found, fault, how == "breaks"))
        if how == "breaks":
            time.sleep(0.2)  # a context takes its time to go
            os._exit(0)


def obedient(pipe):
    pipe.recv()
    pipe.send(("ready", 90))
    while True:
        question, *payload = pipe.recv()
        if question == "outputs":
            task, size = payload
            pipe.send(("outputs", ((task.arrays_at(size)[0].shape, "float32"),)))
            continue
        found, exam = payload
        pipe.send(("rung", Rung.MEMORY_SAFETY))
        with found.rung(Rung.MEMORY_SAFETY):
            fault = obey(exam.job)
        pipe.send(("done", found, fault, fault is not None))
        if fault is not None:
            os._exit(0)


def obey(job):
    """The fault that the program ends in."""
    for verb, argument in re.findall(r"^# gpu: (\w+) ?(.*)$", job.text, re.MULTILINE):
        path = Path(argument)
        if verb == "log":
            with path.open("a") as file:
                print(job.task.id, job.text.splitlines()[-1], file=file)
        if verb == "await":
            while not path.exists():
                time.sleep(0.01)
        if verb == "once" and not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "breaks":
            return Fault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, "a stray access")
    return None
