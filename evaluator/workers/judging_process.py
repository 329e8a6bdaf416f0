"""What runs in one worker: a judge that answers jobs until its pipe closes."""

from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from evaluator.judge.ladder import Judge


def main(pipe: Connection) -> None:
    """Receives the options of its `Judge`, then a `Job`, sends its `Verdict`, again and again, until EOFError."""
    judge_options: Mapping[str, Any] = pipe.recv()
    with Judge(**judge_options) as judge:
        while True:
            pipe.send(judge.judge(pipe.recv()))
