"""The judge: one ladder of rungs for every use, as `docs/protocol.md` tells it."""

import contextlib
import dataclasses
import functools
import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from evaluator.devices import device_model
from evaluator.judge.clock import Clock
from evaluator.judge.cpu_workbench import CpuWorkbench
from evaluator.judge.examination import Examination
from evaluator.judge.findings import Findings
from evaluator.judge.gpu_process import GpuProcess
from evaluator.judge.job import Job
from evaluator.judge.knock_out import own_kernel_share
from evaluator.judge.modes import EFFORTS, MANY_DRAWS_AT, Effort, at_large_sizes
from evaluator.judge.preparation import Preparers
from evaluator.judge.sanitized import watched_run
from evaluator.judge.timing import GPU_SAMPLE_US, Schedule
from evaluator.judge.turns import Pause, Turns
from evaluator.judge.work import work_of
from evaluator.program.extract import extract
from evaluator.program.identity import sha256
from evaluator.program.plan import LibraryStep, Plan
from evaluator.program.screen import screen
from evaluator.program.trace import Output, check_outputs
from evaluator.records import Fault, Limits, Mode, Outcome, ProcessLost, ProgramFault, Rung, Verdict
from evaluator.tasks.task import Task

logger = logging.getLogger(__name__)

DEVICES = ("cpu", "cuda")


class Judge:
    """Judges programs; owns processes and running baselines, so use it in a `with`.

    `seed` fixes the draws of every case: keep it from whoever writes programs. `clock` replaces measured times (tests).
    Several threads may judge at once, each living as long as the judge: `compilers` of them trace and compile, one has
    the device, the others wait for either, which is in no rung's time. `pauses` is told (key of a job, True) when that
    begins to wait for others, and (key, False) when it goes on.
    """

    def __init__(
        self,
        device: str = "cpu",
        mode: Mode | str = Mode.QUICK,
        seed: int = 0,
        limits: Limits | None = None,
        clock: Clock | None = None,
        *,
        compilers: int = 1,
        pauses: Callable[[Hashable, bool], None] | None = None,
    ):
        if device not in DEVICES:
            raise ValueError(f"there is no device {device!r} to judge on; choose one of {', '.join(DEVICES)}")
        self.device = device
        self.mode = Mode(mode)
        self.seed = seed
        self.limits = limits or Limits.for_device(device)
        self._effort = EFFORTS[self.mode]
        self._clock = clock
        self._pauses = pauses
        self._preparers = Preparers(self.limits, compilers)
        self._turns = Turns()  # at the device and all that speaks to it
        self._outputs: dict[tuple, Sequence[Output]] = {}
        self._starting, self._is_started = threading.Lock(), False
        self._bench: CpuWorkbench | GpuProcess = (
            CpuWorkbench(self.limits, self._screened_plan) if device == "cpu" else GpuProcess(self.limits)
        )

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every child process. The judge can be used again and then starts them anew."""
        self._bench.close()
        self._preparers.close()
        self._is_started = False

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
        found, error = self._judge(job)
        if _lost_a_process(error):
            logger.warning("a process was lost; judging once more: %s", error)
            self._renew(job)
            found, error = self._judge(job)
        if error is None or isinstance(error, ProgramFault):
            return found.verdict(error.fault if error else None)
        logger.error("judging %s on task %s failed", _name(found), job.task.id, exc_info=error)
        return found.verdict(Fault(Outcome.EVALUATOR_ERROR, found.current, f"{type(error).__name__}: {error}"))

    def _renew(self, job: Job) -> None:
        """Lets go of processes that may have been killed as well."""
        self._preparers.close()
        with self._turn(job):
            self._bench.replace_lost()

    def _judge(self, job: Job) -> tuple[Findings, Exception | None]:
        """What was found, and the error that ended the climb."""
        seed = self.seed if job.seed is None else job.seed
        found = Findings(
            task=job.task.id,
            size=job.size,
            device=self.device,
            mode=self.mode,
            device_name=device_model.name(self.device),
            seeds=[seed],
            work=work_of(job.task, job.size, self.device) if job.timing else None,
        )
        try:
            if self.mode is Mode.VERIFY and job.size != MANY_DRAWS_AT:
                self._climb(found, job, seed, at_large_sizes(self._effort))
                self._try_many_draws(found, job, seed)
            else:
                self._watch(found, job, self._climb(found, job, seed, self._effort), seed)
        except Exception as error:
            return found, error
        return found, None

    def _try_many_draws(self, found: Findings, job: Job, seed: int) -> None:
        """All the draws of `verify` at the small size, for a program that is right at a large one.

        One that is written for the large size alone cannot be tried, which a note says.
        """
        small, draws = dataclasses.replace(job, size=MANY_DRAWS_AT, timing=False), self._effort.plain_seeds
        aside = dataclasses.replace(found, size=MANY_DRAWS_AT, errors=[], notes=[], rung_ms={})
        try:
            compiled = self._climb(aside, small, seed, dataclasses.replace(self._effort, knock_out=False))
        except ProgramFault as error:
            if aside.errors:  # right on the first draws there, so it is meant to be right at that size
                fault, message = error.fault, f"at size {MANY_DRAWS_AT}: {error.fault.message}"
                raise ProgramFault(fault.outcome, fault.rung, message, fault.line) from error
            found.notes.append(f"not tried on {draws} draws, since it does not hold at size {MANY_DRAWS_AT}: {error}")
        else:
            found.notes.append(f"right on {draws} plain draws at size {MANY_DRAWS_AT}")
            self._watch(found, small, compiled, seed)

    def _watch(self, found: Findings, job: Job, compiled: Any, seed: int) -> None:
        """In `verify` on a GPU, one run under compute-sanitizer."""
        if self.mode is Mode.VERIFY and self.device == "cuda":
            with self._turn(job):
                found.notes += watched_run(compiled, job.task, job.size, seed)

    def _climb(self, found: Findings, job: Job, seed: int, effort: Effort) -> Any:
        """Every rung in order; a ProgramFault ends the climb. Returns the compiled plan."""
        self._start()
        with found.rung(Rung.EXTRACT):
            program = extract(job.text) if job.completion else job.text
            found.program_sha256 = sha256(program)
        with found.rung(Rung.SCREEN):
            screen(program, self.limits)
        plan = self._traced(found, job, program)
        compiled = self._compiled(found, job, plan)
        plain = self._compiled_plain(job)
        exam = Examination(job, plan, compiled, seed, effort, self._schedule, plain=plain, clock=self._clock)
        with self._turn(job):
            self._bench.examine(found, exam)
        return compiled

    def _start(self) -> None:
        """Starts what the device needs, so that this overlaps with other work. What is lost later starts by itself."""
        with self._starting:
            if not self._is_started:
                self._bench.start()
                self._is_started = True

    def _traced(self, found: Findings, job: Job, program: str) -> Plan:
        with self._preparers.tracing(self._pause(job)) as preparer, found.rung(Rung.TRACE):
            plan = preparer.trace(program, job.task, job.size)
        outputs = self._task_outputs(job)  # the start of an oracle is no part of the trace's time
        with found.rung(Rung.TRACE):
            check_outputs(plan, outputs, program)
            _check_library(plan, self.limits.library_steps and job.task.library_steps)
            found.own_kernel_share = own_kernel_share(plan)
        return plan

    def _compiled(self, found: Findings, job: Job, plan: Plan) -> Any:
        with self._preparers.compiling(plan, self._pause(job)) as preparer, found.rung(Rung.COMPILE):
            compiled = self._bench.prepare(plan, preparer)
            found.compiler = compiled.report
        return compiled

    def _compiled_plain(self, job: Job) -> object | None:
        """The job's own baseline for a GPU. RuntimeError where that is itself at fault."""
        if job.plain is None or self.device == "cpu":
            return None
        try:
            plan = self._screened_plan(job.plain, job)
            with self._preparers.compiling(plan, self._pause(job)) as preparer:
                return self._bench.prepare(plan, preparer)
        except ProgramFault as error:
            raise RuntimeError(f"the baseline program does not compile: {error.fault.outcome}: {error}") from error

    def _screened_plan(self, text: str, job: Job) -> Plan:
        """The plan of a program that is not the job's own."""
        screen(text, self.limits)
        with self._preparers.tracing(self._pause(job)) as preparer:
            plan = preparer.trace(text, job.task, job.size)
        check_outputs(plan, self._task_outputs(job), text)
        return plan

    def _task_outputs(self, job: Job) -> Sequence[Output]:
        """Shape and dtype of each output of a job's task; asked of the device once."""
        key = (job.task.source_at(job.size), job.task.arrays_at(job.size))
        if key not in self._outputs:
            with self._turn(job, first=True):
                if key not in self._outputs:
                    self._outputs[key] = self._bench.outputs(job.task, job.size)
        return self._outputs[key]

    def _turn(self, job: Job, *, first: bool = False) -> contextlib.AbstractContextManager[None]:
        """The device, for one program or question. One workload's go in a row: the device keeps what they share."""
        return self._turns.taken(job.workload, self._pause(job), first=first)

    def _pause(self, job: Job) -> Pause | None:
        return None if self._pauses is None else functools.partial(self._pauses, job.key)

    @property
    def _schedule(self) -> Schedule:
        effort, budget_s = self._effort, self.limits.timing_s[self.mode]
        if self.device == "cpu":
            return Schedule(effort.width, min(budget_s, self.limits.cpu_timing_s), effort.min_pairs)
        return Schedule(effort.width, budget_s, effort.min_pairs, min_sample_us=GPU_SAMPLE_US)


def _lost_a_process(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, is the loss of a process that somebody else killed."""
    while error is not None:
        if isinstance(error, ProcessLost):
            return True
        error = error.__cause__ or error.__context__
    return False


def _name(found: Findings) -> str:
    return found.program_sha256[:12] or "a completion"


def _check_library(plan: Plan, allowed: bool) -> None:
    """Raises `refused` where a plan has library steps and the task or the run wants own kernels alone."""
    for step in plan.steps:
        if isinstance(step, LibraryStep) and not allowed:
            message = "library steps (cp.matmul, @, evaluator.lib) are not allowed here; write kernels"
            raise ProgramFault(Outcome.REFUSED, Rung.TRACE, message, step.line)
