"""The judge: one ladder of rungs for every use, as `docs/judging.md` tells it."""

import contextlib
import logging
from collections.abc import Sequence

from evaluator.devices import cpu
from evaluator.judge.baseline import Baselines, open_sessions, plain_text
from evaluator.judge.clock import Clock, ClockedSession
from evaluator.judge.correctness import Case, check_cases, check_orders, judge_case, schedule, worst_of_each
from evaluator.judge.expected import Expected
from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.judge.knock_out import idle_launches, own_kernel_share
from evaluator.judge.memory_safety import PASSES, guarded_run, replay_on_new_contents
from evaluator.judge.modes import EFFORTS
from evaluator.judge.oracle import Oracle
from evaluator.judge.recheck import check_reproduced, check_timed_outputs, computing, stands_out
from evaluator.judge.seeds import derive
from evaluator.judge.timing import BUCKETS, Pairs, Schedule, Timed, rounded, time_alone, time_pairs
from evaluator.program.extract import extract
from evaluator.program.identity import sha256
from evaluator.program.plan import Plan
from evaluator.program.screen import screen
from evaluator.program.trace import Tracer
from evaluator.records import Fault, Interval, Limits, Mode, Outcome, ProgramFault, Rung, Verdict
from evaluator.tasks.task import Task

logger = logging.getLogger(__name__)


class Judge:
    """Judges programs one at a time; owns the oracle's process and the running baselines, so use it in a `with`.

    `seed` fixes the draws of every case: keep it from whoever writes programs. `clock` replaces measured times (tests).
    """

    def __init__(
        self,
        device: str = "cpu",
        mode: Mode | str = Mode.QUICK,
        seed: int = 0,
        limits: Limits | None = None,
        clock: Clock | None = None,
    ):
        if device != "cpu":
            raise ValueError(f"device {device!r} cannot be judged on by this version; use device='cpu'")
        self.device = device
        self.mode = Mode(mode)
        self.seed = seed
        self.limits = limits or Limits()
        self._effort = EFFORTS[self.mode]
        self._clock = clock
        self._oracle = Oracle()
        self._tracer: Tracer | None = None
        self._baselines = Baselines(self._prepare, self.limits, BUCKETS)

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every child process. The judge can be used again and then starts them anew."""
        self._baselines.close()
        self._oracle.close()
        if self._tracer is not None:
            self._tracer.close()
            self._tracer = None

    def check(
        self,
        text: str,
        task: Task,
        size: str = "cpu",
        completion: bool = False,
        *,
        plain: str | None = None,
        record: float | None = None,
        timing: bool = True,
        cases: Sequence[str] | None = None,
    ) -> Verdict:
        """The verdict on one program, or on a completion that holds one. Arguments as in `Job`; see `judge`."""
        named = None if cases is None else tuple(cases)
        return self.judge(
            Job(
                key=None,
                text=text,
                task=task,
                size=size,
                completion=completion,
                plain=plain,
                record=record,
                timing=timing,
                cases=named,
            )
        )

    def judge(self, job: Job) -> Verdict:
        """The verdict on a job. Never raises for a program's fault; KeyError where the task has no such size."""
        job.task.arrays_at(job.size)
        seed = self.seed if job.seed is None else job.seed
        found = Findings(task=job.task.id, size=job.size, device=self.device, mode=self.mode, seeds=[seed])
        try:
            self._climb(found, job, seed)
        except ProgramFault as error:
            return found.verdict(error.fault)
        except Exception as error:
            logger.exception("judging %s on task %s failed", found.program_sha256[:12] or "a completion", job.task.id)
            return found.verdict(Fault(Outcome.EVALUATOR_ERROR, found.current, f"{type(error).__name__}: {error}"))
        return found.verdict(None)

    def _climb(self, found: Findings, job: Job, seed: int) -> None:
        """Every rung in order; a ProgramFault ends the climb."""
        task, size = job.task, job.size
        self._oracle.start()
        with found.rung(Rung.EXTRACT):
            program = extract(job.text) if job.completion else job.text
            found.program_sha256 = sha256(program)
        with found.rung(Rung.SCREEN):
            screen(program, self.limits)
        self._oracle.outputs(task, size)  # the oracle's start is no part of the trace's time
        with found.rung(Rung.TRACE):
            plan = self._trace(program, task, size)
            found.own_kernel_share = own_kernel_share(plan)
        with found.rung(Rung.COMPILE):
            compiled = cpu.compile(plan, self.limits)
        cases = schedule(task, self._effort, seed, job.cases)
        first = self._expected(job, cases[0])
        with found.rung(Rung.LAUNCH):
            session = cpu.Session(compiled, self.limits)
        with session:
            with found.rung(Rung.MEMORY_SAFETY):
                reports = [guarded_run(session, first.inputs, how, cases[0].seed) for how in PASSES[:3]]
                found.peak_bytes = reports[0].peak_bytes
                second = self._expected(job, Case("plain", derive(seed, task.id, "replay")))
                replay_on_new_contents(session, lambda: cpu.Session(compiled, self.limits), task, first, second)
            with found.rung(Rung.CORRECTNESS):
                check_orders([report.outputs for report in reports], first, task)
                found.errors = [judge_case(reports[0].outputs, first, task, cases[0])]
                for error in check_cases(session, self._oracle, task, size, cases[1:]):
                    found.errors = worst_of_each([*found.errors, error])
                if self._effort.knock_out:
                    found.notes += idle_launches(plan, first, task, self.limits)
        if job.timing:
            self._time(found, compiled, job, seed, first)

    def _time(self, found: Findings, compiled: cpu.CompiledPlan, job: Job, seed: int, first: Expected) -> None:
        """Timing and recheck in processes of their own, against the plain program where there is one."""
        sha = found.program_sha256
        plain = job.plain if job.plain is not None else plain_text(job.task.id)
        fresh = self._expected(job, Case("plain", derive(seed, sha, "fresh")))
        with contextlib.ExitStack() as stack:
            with found.rung(Rung.TIMING):
                sessions = open_sessions(stack, compiled, self.limits, first, BUCKETS)
                if plain is None:
                    with computing():
                        found.times["program"] = time_alone(self._clocked(sessions, sha), self._schedule)
                else:
                    pairs = self._pairs(sessions, sha, plain, job, first, derive(seed, sha, "order"))
                    found.times.update(program=pairs.program, plain=pairs.reference)
                    found.speedups["plain"] = pairs.speedup
            with found.rung(Rung.RECHECK):
                check_timed_outputs(sessions, first, fresh, job.task)
        if plain is None:
            return
        if stands_out(found.speedups["plain"], job.record):
            with found.rung(Rung.RECHECK):
                seeds = (derive(seed, sha, "again", attempt) for attempt in (1, 2))
                again = (self._speedup_again(compiled, sha, plain, job, each) for each in seeds)
                found.speedups["plain"] = check_reproduced(found.speedups["plain"], again)
        found.speedup = rounded(found.speedups["plain"])

    def _speedup_again(self, compiled: cpu.CompiledPlan, sha: str, plain: str, job: Job, seed: int) -> Interval:
        """The speed-up in new processes on a new draw, whose outputs must be right as well."""
        expected = self._expected(job, Case("plain", seed))
        with contextlib.ExitStack() as stack:
            sessions = open_sessions(stack, compiled, self.limits, expected, BUCKETS)
            pairs = self._pairs(sessions, sha, plain, job, expected, seed)
            check_timed_outputs(sessions, expected, expected, job.task)
        return pairs.speedup

    def _pairs(
        self, sessions: Sequence[cpu.Session], sha: str, plain: str, job: Job, inputs: Expected, seed: int
    ) -> Pairs:
        """Pairs of the plain program and the candidate on the same inputs."""
        try:
            references = self._baselines.sessions(plain, job.task, job.size, inputs)
        except ProgramFault as error:
            self._baselines.close()
            message = f"the plain program of task {job.task.id} does not run: {error.fault.outcome}: {error}"
            raise RuntimeError(message) from error
        buckets = zip(self._clocked(references, sha256(plain)), self._clocked(sessions, sha), strict=True)
        try:
            with computing():
                return time_pairs(list(buckets), self._schedule, seed)
        except ProgramFault:
            self._baselines.close()  # a fault ends the session it came from, and that may be one of these
            raise

    def _prepare(self, text: str, task: Task, size: str) -> cpu.CompiledPlan:
        """Screen, trace and compile, for the baseline."""
        screen(text, self.limits)
        return cpu.compile(self._trace(text, task, size), self.limits)

    def _trace(self, text: str, task: Task, size: str) -> Plan:
        if self._tracer is None:
            self._tracer = Tracer(self.limits)
        arrays = task.arrays_at(size)
        inputs = [array for array in arrays if not array.parameter]
        parameters = [array for array in arrays if array.parameter]
        return self._tracer.trace(text, inputs, self._oracle.outputs(task, size), parameters)

    def _expected(self, job: Job, case: Case) -> Expected:
        return self._oracle.expected(job.task, job.size, case.name, case.seed)

    def _clocked(self, sessions: Sequence[Timed], sha: str) -> list[Timed]:
        clock = self._clock
        return list(sessions) if clock is None else [ClockedSession(session, sha, clock) for session in sessions]

    @property
    def _schedule(self) -> Schedule:
        budget_s = min(self.limits.timing_s[self.mode], self.limits.cpu_timing_s)
        return Schedule(width=self._effort.width, budget_s=budget_s, min_pairs=self._effort.min_pairs)
