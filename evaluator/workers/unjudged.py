"""The verdict of a job that no judge has got to the end of."""

from collections.abc import Mapping
from typing import Any

from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.program.identity import sha256
from evaluator.records import Fault, Mode, Outcome, Rung, Verdict


def unjudged(
    job: Job, judge_options: Mapping[str, Any], message: str, outcome: Outcome, device_name: str = ""
) -> Verdict:
    """`outcome` before the first rung, for what `message` says. `judge_options`: those that the job came with."""
    found = Findings(
        task=job.task.id,
        size=job.size,
        device=str(judge_options.get("device", "cpu")),
        mode=Mode(judge_options.get("mode", Mode.QUICK)),
        device_name=device_name,
        program_sha256="" if job.completion else sha256(job.text),
    )
    return found.verdict(Fault(outcome, Rung.EXTRACT, message))
