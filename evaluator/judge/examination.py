"""The rungs from launch to recheck: what is done with a compiled program on its device, whichever that is."""

import contextlib
import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from evaluator.judge.clock import Clock, ClockedSession
from evaluator.judge.correctness import (
    Case,
    case_error,
    check_cases,
    disagreement,
    schedule,
    worst,
    worst_of_each,
)
from evaluator.judge.expected import Expected
from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.judge.knock_out import idle_launches, own_kernel_share
from evaluator.judge.memory_safety import PASSES, check_replay, guarded_run
from evaluator.judge.modes import Effort
from evaluator.judge.recheck import (
    CASE_REPLAYS,
    SLOWER,
    check_fresh_contents,
    check_reproduced,
    check_timed_outputs,
    computing,
    stands_out,
)
from evaluator.judge.seeds import derive
from evaluator.judge.timing import Pairs, Schedule, Timed, rounded, steady_pairs, time_alone, time_pairs
from evaluator.judge.workbench import CompiledPlan, Session, Workbench
from evaluator.program.plan import Plan
from evaluator.records import Interval, Outcome, ProgramFault, Rung


@dataclasses.dataclass(frozen=True)
class Examination:
    """One compiled program to be looked at; can be pickled."""

    job: Job
    plan: Plan
    compiled: CompiledPlan
    seed: int  # of every draw
    effort: Effort
    timing: Schedule
    plain: CompiledPlan | None = None  # of the job's own baseline, where the device wants it compiled beforehand
    clock: Clock | None = None  # replaces measured times (tests)


def examine(bench: Workbench, found: Findings, exam: Examination) -> None:
    """Every rung from launch on, in order; fills `found`. Raises the ProgramFault that ends the climb.

    Expected values may be gigabytes, so each is asked for where it is used and none is held longer.
    DeviceLost: the climb is over, but the device has to be opened anew.
    """
    first, *others = schedule(exam.job.task, exam.effort, exam.seed, exam.job.cases)
    _judge_outputs(bench, found, exam, first, others)  # whose session's memory goes with it
    if exam.job.timing:
        _time(bench, found, exam, first, others)
    if exam.effort.knock_out:
        expected = _expected(bench, exam.job, first)
        for note in idle_launches(bench, exam.plan, exam.compiled, expected, exam.job.task):
            found.notes.append(note)  # one by one, since the last may come with an error


def _judge_outputs(bench: Workbench, found: Findings, exam: Examination, first: Case, others: Sequence[Case]) -> None:
    """Launch, memory safety and correctness, in one session."""
    task, size = exam.job.task, exam.job.size
    expected = _expected(bench, exam.job, first)
    with found.rung(Rung.LAUNCH):
        opened = bench.open(exam.compiled)
    with opened as session:
        with found.rung(Rung.MEMORY_SAFETY):
            report = guarded_run(session, expected.inputs, PASSES[0], first.seed)
            found.peak_bytes = report.peak_bytes
            finding, shapes = worst(bench, report.outputs, expected, task), [x.shape for x in expected.exact]
            disagreements = [  # one run at a time, since outputs may be gigabytes
                disagreement(bench, report.outputs, again.outputs, expected, task)
                for again in (guarded_run(session, expected.inputs, how, first.seed) for how in PASSES[1:3])
            ]
            del report, expected
            _replay(bench, session, exam, first)
        with found.rung(Rung.CORRECTNESS):
            for fault in filter(None, disagreements):
                raise fault
            found.errors = [case_error(finding, first, shapes)]
            for error in check_cases(bench, session, task, size, others):
                found.errors = worst_of_each([*found.errors, error])


def _replay(bench: Workbench, session: Session, exam: Examination, first: Case) -> None:
    task, second = exam.job.task, Case("plain", derive(exam.seed, exam.job.task.id, "replay"))
    session.run(_expected(bench, exam.job, first).inputs, order="forward", seed=0, guard="right")
    check_replay(bench, session, exam.compiled, task, _expected(bench, exam.job, second))


def _time(bench: Workbench, found: Findings, exam: Examination, first: Case, others: Sequence[Case]) -> None:
    """Timing and recheck, against every baseline there is."""
    job, sha = exam.job, found.program_sha256
    with contextlib.ExitStack() as stack:
        with found.rung(Rung.TIMING):
            expected = _expected(bench, job, first)
            sessions = bench.open_timed(stack, exam.compiled, expected)
            pairs = _pairs(bench, exam, sessions, sha, expected, derive(exam.seed, sha, "order"))
            if not pairs:
                with computing():
                    found.times["program"] = time_alone(_clocked(exam, sessions, sha), exam.timing)
            for name, taken in pairs.items():
                found.times.update({name: taken.reference, "program": taken.program})
                found.speedups[name] = taken.speedup
            found.notes += bench.disturbances()
            if found.own_kernel_share is None:
                found.own_kernel_share = own_kernel_share(exam.plan, sessions[0].step_us())
            found.floor_us = bench.floor_us(job, expected)
            _check_floor(found)
        with found.rung(Rung.RECHECK):
            check_timed_outputs(bench, sessions, expected, job.task)
            del expected
            fresh = Case("plain", derive(exam.seed, sha, "fresh"), once=True)
            check_fresh_contents(bench, sessions[0], _expected(bench, job, fresh), job.task)
            for case in _some_hidden(exam, sha, others):
                _try_hidden_case(bench, found, exam, sessions, case)
    del sessions  # and with them the memory of library steps
    if not pairs:
        return
    name, speedup = min(found.speedups.items(), key=lambda item: item[1].value)
    if stands_out(speedup, job.record):
        with found.rung(Rung.RECHECK):
            seeds = (derive(exam.seed, sha, "again", attempt) for attempt in (1, 2))
            again = (_speedup_again(bench, exam, sha, name, each) for each in seeds)
            speedup = found.speedups[name] = check_reproduced(speedup, again)
    found.speedup = rounded(speedup)


def _try_hidden_case(
    bench: Workbench, found: Findings, exam: Examination, sessions: Sequence[Session], case: Case
) -> None:
    """Timed replays of a hidden case: right in the memory that is timed too, and no slower.

    Where they take longer than on the task's own draws, the speed-up on this case counts if it is lower.
    """
    contents = _expected(bench, exam.job, case)
    if not contents.usable:
        return
    taken_us = check_fresh_contents(bench, sessions[0], contents, exam.job.task, CASE_REPLAYS)
    if bench.widest is None or taken_us <= SLOWER * found.times["program"].value:
        return
    for name, taken in _pairs(bench, exam, sessions, found.program_sha256, contents, case.seed).items():
        if taken.speedup.value < found.speedups[name].value:
            found.speedups[name] = taken.speedup
            found.notes.append(f"slower on other contents: the speed-up over {name} is that of case {case.name}")


def _some_hidden(exam: Examination, sha: str, cases: Sequence[Case]) -> list[Case]:
    """A few of the draws that the program was judged on, picked anew for every program."""
    hidden = list({case.name: case for case in cases if case.name != "plain"}.values())
    picked = np.random.default_rng(derive(exam.seed, sha, "timed cases")).permutation(len(hidden))
    return [hidden[i] for i in picked[: exam.effort.timed_cases]]


def _speedup_again(bench: Workbench, exam: Examination, sha: str, name: str, seed: int) -> Interval:
    """The speed-up over one baseline in new sessions on a new draw, whose outputs must be right as well."""
    expected = _expected(bench, exam.job, Case("plain", seed, once=True))
    with contextlib.ExitStack() as stack:
        sessions = bench.open_timed(stack, exam.compiled, expected)
        pairs = _pairs(bench, exam, sessions, sha, expected, seed)
        check_timed_outputs(bench, sessions, expected, exam.job.task)
    return pairs[name].speedup


def _pairs(
    bench: Workbench, exam: Examination, sessions: Sequence[Session], sha: str, inputs: Expected, seed: int
) -> dict[str, Pairs]:
    """Pairs of each baseline and the candidate on the same inputs."""
    found = {}
    for name, reference in bench.references(exam.job, inputs, exam.plain).items():
        ours, theirs = _clocked(exam, sessions, sha), _clocked(exam, reference.sessions, reference.identity)
        take = functools.partial(time_pairs, list(zip(theirs, ours, strict=True)), seed=seed)
        try:
            with computing():
                found[name] = steady_pairs(take, exam.timing, bench.widest)
        except ProgramFault:
            bench.forget_references()  # a fault ends the session it came from, and that may be one of these
            raise
    return found


def _check_floor(found: Findings) -> None:
    """Raises `too_fast` where a program took less time than the device needs to move the bytes."""
    taken = found.times["program"].value
    if found.floor_us is not None and taken < found.floor_us:
        message = f"the program took {taken:.1f} us; moving inputs and outputs takes {found.floor_us:.1f} us at least"
        raise ProgramFault(Outcome.TOO_FAST, Rung.TIMING, message)


def _expected(bench: Workbench, job: Job, case: Case) -> Expected:
    return bench.expected(job.task, job.size, case.name, case.seed, once=case.once)


def _clocked(exam: Examination, sessions: Sequence[Timed], identity: str) -> list[Timed]:
    clock = exam.clock
    return list(sessions) if clock is None else [ClockedSession(session, identity, clock) for session in sessions]
