"""The arrows evaluate and record: jobs go to a pool, verdicts into the store, and no program is measured twice.

Programs from `kernels/` take the same way as samples, as step SEED_STEP: their "completion" is the program itself and
their "prompt" the file's name.
"""

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from cudal1_jax.contrastive.records import SEED_STEP, HackCase, Judged, Prompt, Sample
from cudal1_jax.contrastive.reward import record
from cudal1_jax.contrastive.store import Store
from cudal1_jax.report import progress
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages.workload import Seed
from evaluator.judge.job import Job
from evaluator.judge.seeds import derive
from evaluator.program.extract import extract
from evaluator.program.identity import sha256
from evaluator.records import Outcome, ProgramFault, Verdict
from evaluator.tasks.task import Task

# Outcomes of programs that score without earning it; each is kept as a case to compare later ones with.
HACKS = (Outcome.NOT_REPRODUCED, Outcome.WRONG_AFTER_TIMING, Outcome.TOO_FAST, Outcome.STATEFUL)


class Pool(Protocol):
    """Where jobs are judged: what a stage needs of `evaluator.workers.pool.Pool`, or a scripted one in tests."""

    def submit(self, job: Job) -> None: ...

    def completed(self) -> Iterator[tuple[Job, Verdict]]: ...


@dataclasses.dataclass(frozen=True)
class Bench:
    """Everything that judging needs and that stays the same through a run."""

    store: Store
    pool: Pool
    tasks: Mapping[str, Task]  # those of the schedule
    schedule: Sequence[Sequence[str]]  # task id of each prompt of each iteration
    device: str
    size: str
    seed: int  # of the run; the seeds of each check are derived from it


@dataclasses.dataclass(frozen=True)
class Entry:
    """A sample on its way through the bench."""

    step: int
    sample: int
    task: str
    program: str  # "" where the completion holds none
    name: str
    text: str  # what the judge reads: a completion, or a program for seeds


def record_seeds(bench: Bench, seeds: Sequence[Seed]) -> None:
    """Fix the programs that a run begins with; a run that goes on keeps those of its beginning."""
    nothing = np.zeros(0)
    bench.store.record_rollout(
        SEED_STEP,
        [Prompt(prompt=i, task=seed.task, text=seed.name, exemplars=()) for i, seed in enumerate(seeds)],
        [
            Sample(sample=i, prompt=i, text=seed.text, tokens=nothing, logprobs=nothing, finished=True)
            for i, seed in enumerate(seeds)
        ],
    )


def submit(bench: Bench, step: int) -> dict[Hashable, list[Entry]]:
    """Hand to the pool what is recorded for `step` and not judged yet; returns what each submitted job stands for.

    Samples with the same program share one job. A program that this run has judged before gets that verdict again.
    """
    judged = bench.store.judged(end_step=step + 1)
    known = _first_of_each_program(judged)
    done = {entry.sample for entry in judged if entry.step == step}
    earlier = [entry for entry in judged if entry.step < step]
    jobs: dict[Hashable, list[Entry]] = {}
    for entry in _entries(bench.store, step):
        program = (entry.task, sha256(entry.program)) if entry.program else (step, entry.sample)
        if entry.sample in done:
            continue
        if program in known:
            _record(bench.store, entry, known[program].verdict)
        elif program in jobs:
            jobs[program].append(entry)
        else:
            jobs[program] = [entry]
            bench.pool.submit(_job(bench, program, entry, earlier))
    return jobs


def collect(bench: Bench, jobs: Mapping[Hashable, Sequence[Entry]], title: str) -> None:
    """Record each verdict as it comes, until nothing that was submitted is outstanding.

    RunError where the evaluator itself failed on a seed or on every job: a missing compiler is no program's fault. Then
    nothing of it is recorded, so that the same command judges again.
    """
    failed: list[tuple[Entry, Verdict]] = []
    if jobs:
        for job, verdict in progress.track(bench.pool.completed(), title, len(jobs), "program"):
            for entry in jobs[job.key]:
                if verdict.outcome is Outcome.EVALUATOR_ERROR:
                    failed.append((entry, verdict))
                else:
                    _record(bench.store, entry, verdict)
    if failed and (failed[0][0].step == SEED_STEP or len(failed) == sum(map(len, jobs.values()))):
        entry, verdict = min(failed, key=lambda failure: failure[0].sample)
        raise RunError(
            f"the evaluator failed while judging {entry.name or 'a sample'} of task {entry.task}: {verdict.message};"
            " `python -m evaluator doctor` says what is missing; then give the same command again"
        )
    for entry, verdict in failed:
        _record(bench.store, entry, verdict)


def collect_seeds(bench: Bench, jobs: Mapping[Hashable, Sequence[Entry]]) -> None:
    """`collect` for the programs of `kernels/`. RunError: a task none of whose programs is right here."""
    collect(bench, jobs, "seeds")
    judged = bench.store.judged(end_step=0)
    for task in bench.tasks:
        found = [entry for entry in judged if entry.task == task]
        if found and not any(entry.verdict.ok for entry in found):
            verdict = found[0].verdict
            raise RunError(
                f"no verified program of task {task} is right at size {bench.size} on {bench.device}: {found[0].name}:"
                f" {verdict.outcome}: {verdict.message}; choose another size, or leave the task out of config.tasks"
            )


def record_hacks(bench: Bench, step: int) -> None:
    """Keep the programs of `step` that scored, or would have, without earning it."""
    for entry in bench.store.judged(first_step=step, end_step=step + 1):
        verdict = entry.verdict
        if verdict.outcome in HACKS:
            bench.store.record_hack(
                HackCase(entry.task, verdict.program_sha256, program=entry.program, reason=verdict.message)
            )


def verdicts(bench: Bench, step: int) -> list[Verdict]:
    """The verdicts of an iteration, by sample."""
    return [entry.verdict for entry in bench.store.judged(first_step=step, end_step=step + 1)]


def _entries(store: Store, step: int) -> list[Entry]:
    prompts, samples = store.rollout(step) or ([], [])
    is_seed = step == SEED_STEP
    return [
        Entry(
            step=step,
            sample=sample.sample,
            task=prompts[sample.prompt].task,
            program=sample.text if is_seed else _program(sample.text),
            name=prompts[sample.prompt].text if is_seed else "",
            text=sample.text,
        )
        for sample in samples
    ]


def _program(completion: str) -> str:
    try:
        return extract(completion)
    except ProgramFault:
        return ""


def _job(bench: Bench, key: tuple, entry: Entry, judged: Sequence[Judged]) -> Job:
    return Job(
        key=key,
        text=entry.text,
        task=bench.tasks[entry.task],
        size=bench.size,
        completion=entry.step != SEED_STEP,
        seed=derive(bench.seed, "judge", entry.step),  # one for the group: the oracle keeps its answers
        record=record(judged, entry.task),
        device_name=_model(judged, entry.task),
    )


def _model(judged: Sequence[Judged], task: str) -> str | None:
    """The model of device that has judged the task's programs so far, with whose figures alone new ones compare."""
    named = (entry.verdict.device_name for entry in judged if entry.task == task and entry.verdict.ok)
    return next(filter(None, named), None)


def _record(store: Store, entry: Entry, verdict: Verdict) -> None:
    store.record_verdict(entry.step, entry.sample, entry.program, entry.name, verdict)


def _first_of_each_program(judged: Sequence[Judged]) -> dict[tuple, Judged]:
    """The first entry of each (task, program) that the evaluator did judge."""
    first: dict[tuple, Judged] = {}
    for entry in judged:
        if entry.program and entry.verdict.outcome is not Outcome.EVALUATOR_ERROR:
            first.setdefault((entry.task, entry.verdict.program_sha256), entry)
    return first
