"""Measures the programs of contests on the emulator and turns them into contrastive examples."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from cudal1_jax.corpus import example, folder
from cudal1_jax.corpus.example import Contest
from evaluator.judge.job import Job
from evaluator.program.identity import sha256
from evaluator.records import Interval, Limits, Mode, Verdict
from evaluator.workers.local import LocalPool

MEASURED = "measured.jsonl"  # one line per program: contest, sha256, outcome, speed-up over the plain program
TIMING_S = 0.1  # time for the pairs of one program; differences of a few percent are told apart
CASES = ("large",)  # correctness is the business of `verify`; one hidden case guards the figures of generated programs
SHARD = 500  # examples of a file
ATTEMPTS = 3  # at a program whose outcome is a fault of ours; what is left then is tried by the next run


class Pool(Protocol):
    """Where programs are judged: `evaluator.workers.local.LocalPool`, or a scripted one in tests."""

    def submit(self, job: Job) -> None: ...

    def completed(self) -> Iterator[tuple[Job, Verdict]]: ...


def measure(out: Path, workers: int, per_contest: int) -> int:
    """Measure the contests of a corpus on `workers` processes; see `measure_with`."""
    limits = Limits(timing_s=dict.fromkeys(Mode, TIMING_S))
    with LocalPool(workers, {"mode": Mode.QUICK, "limits": limits}) as pool:
        return measure_with(out, pool, per_contest)


def measure_with(out: Path, pool: Pool, per_contest: int) -> int:
    """Measure what is not measured yet, then write the examples. Returns how many programs were not ok.

    Figures are kept as they come in, so a run that is stopped measures nothing twice.
    """
    contests = list(folder.read_contests(out))
    for _ in range(ATTEMPTS):
        known = _read(out / MEASURED)
        jobs = [job for contest in contests for job in _jobs(contest) if job.key not in known]
        if not jobs:
            break
        _measure_jobs(out / MEASURED, jobs, pool)
    known = _read(out / MEASURED)
    _write_examples(out, contests, known, per_contest)
    keys = [job.key for contest in contests for job in _jobs(contest)]
    return sum(key not in known or known[key]["outcome"] != "ok" for key in keys)


def _measure_jobs(path: Path, jobs: Sequence[Job], pool: Pool) -> None:
    """Have the jobs judged, and add a line for each to the file at `path` as it ends."""
    for job in jobs:
        pool.submit(job)
    with path.open("a", encoding="utf-8") as file:
        for job, verdict in tqdm(pool.completed(), total=len(jobs), desc="measuring", unit=" programs"):
            interval = verdict.speedups.get("plain")
            record = {
                "key": job.key,
                "outcome": verdict.outcome.value,
                "message": verdict.message if not verdict.ok else "",
                "speedup": [interval.value, interval.low, interval.high] if interval else None,
            }
            file.write(json.dumps(record) + "\n")
            file.flush()


def _jobs(contest: Contest) -> list[Job]:
    """Jobs of a contest's candidates; the key names the contest and the program."""
    return [
        Job(
            key=(contest.number, sha256(program.text)),
            text=program.text,
            task=contest.task,
            plain=contest.plain,
            cases=None if contest.kernels else CASES,
        )
        for program in contest.candidates
    ]


def _read(path: Path) -> dict[tuple[int, str], dict[str, Any]]:
    """Records by (contest, sha256); a last line that was cut off is dropped."""
    records: dict[tuple[int, str], dict[str, Any]] = {}
    if path.exists():
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            folder.write_lines(path, whole.splitlines())
        for line in whole.splitlines():
            record = json.loads(line)
            if record["outcome"] != "evaluator_error":  # ours, and perhaps gone the next time
                records[record["key"][0], record["key"][1]] = record
    return records


def _write_examples(
    out: Path, contests: Iterable[Contest], known: dict[tuple[int, str], dict[str, Any]], per_contest: int
) -> None:
    """Contrastive examples of the programs that are right and measured; right variants of `kernels/` alone as well."""
    contrastive, variants = [], []
    for contest in contests:
        records = {program.text: known.get((contest.number, sha256(program.text))) for program in contest.candidates}
        right = {text: record for text, record in records.items() if record and record["outcome"] == "ok"}
        speedups = {text: Interval(*record["speedup"]) for text, record in right.items() if record["speedup"]}
        contrastive += example.contrastive(contest, speedups, per_contest)
        variants += example.variants(contest, right) if contest.kernels else []
    for kind, examples in (("contrastive", contrastive), ("variant", variants)):
        for shard, start in enumerate(range(0, len(examples), SHARD)):
            chosen = map(example.to_json, examples[start : start + SHARD])
            folder.write_lines(folder.shard_path(out, kind, shard), chosen)
