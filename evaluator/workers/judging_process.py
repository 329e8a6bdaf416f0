"""What runs in one worker: a judge that answers jobs until its pipe closes."""

from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from evaluator.judge.ladder import Judge
from evaluator.judge.lifetime import die_with_parent


def main(pipe: Connection, judge_options: Mapping[str, Any]) -> None:
    """Receives a `Job`, sends its `Verdict`, again and again."""
    die_with_parent()
    with Judge(**judge_options) as judge:
        while True:
            try:
                job = pipe.recv()
            except (EOFError, OSError):
                return
            pipe.send(judge.judge(job))
