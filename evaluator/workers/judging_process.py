"""What runs in one worker: a judge that answers jobs until its pipe closes."""

import contextlib
import os
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self

from evaluator.devices import device_model
from evaluator.judge.job import Job
from evaluator.records import Verdict


class JudgeLike(Protocol):
    """What a worker needs of `evaluator.judge.ladder.Judge`; tests put scripted ones in its place."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def judge(self, job: Job) -> Verdict: ...


MakeJudge = Callable[..., JudgeLike]


class JudgeOf:
    """The judge of the options that were asked for last; another one takes its place when they change."""

    def __init__(self, make: MakeJudge):
        self._make = make
        self._options: Mapping[str, Any] | None = None
        self._stack = contextlib.ExitStack()
        self._judge: JudgeLike | None = None

    def __call__(self, options: Mapping[str, Any], job: Job) -> Verdict:
        if self._judge is None or options != self._options:
            self.close()
            self._judge = self._stack.enter_context(self._make(**options))
            self._options = options
        return self._judge.judge(job)

    def close(self) -> None:
        self._judge = None
        self._stack.close()


def main(pipe: Connection) -> None:
    """Receives (how to make a judge, its device, environment), and sends the model of that device.

    Then it receives (options of the judge, `Job`) and sends a `Verdict`, again and again, until EOFError.
    """
    make, device, environment = pipe.recv()
    os.environ.update(environment)
    pipe.send(device_model.name(device))
    with contextlib.closing(JudgeOf(make)) as judge:
        while True:
            pipe.send(judge(*pipe.recv()))
