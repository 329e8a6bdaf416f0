"""A child that speaks the protocol of `cuda_child` as the task's id tells it to; `test_gpu_process` starts it."""

import os
import signal
import time

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
