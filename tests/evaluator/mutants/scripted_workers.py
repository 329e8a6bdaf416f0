"""Stand-ins for the worker process: they answer from a script instead of compiling anything."""

import os
import time

from evaluator.mutants.trial import Original, State, Trial
from evaluator.records import Outcome


def record(mutant):
    kept = {name: value for name, value in vars(mutant).items() if name != "text"}
    return Trial(**kept, state=State.TRIED, outcome=Outcome.WRONG_VALUE, message="", exposure=None, seconds=0.0)


def obedient(pipe):
    """Catches every mutant; a program called `fails` fails, one called `dies` takes the worker along."""
    pipe.recv()
    while True:
        batch = pipe.recv()
        if not batch.mutants:
            pipe.send(Original(batch.program, batch.text, 1.0, None))
        for mutant in batch.mutants:
            if batch.program == "dies":
                os._exit(7)
            pipe.send(record(mutant))
        pipe.send("RuntimeError: out of luck" if batch.program == "fails" else None)


def sleeping(pipe):
    pipe.recv()
    pipe.recv()
    time.sleep(60)
