"""Which steps of a plan do the work: the share of library steps, and launches whose absence changes nothing."""

import dataclasses

import numpy as np

from evaluator.devices import cpu
from evaluator.judge.expected import Expected
from evaluator.judge.memory_safety import right
from evaluator.program.plan import Launch, Matmul, Plan
from evaluator.records import Limits, ProgramFault
from evaluator.tasks.task import Task

MAX_KNOCK_OUTS = 64  # a plan of more launches is a loop, and one run each would take too long


def own_kernel_share(plan: Plan) -> float | None:
    """1 for own kernels alone, 0 for library steps alone, None for neither or both (only a clock can tell)."""
    own = any(isinstance(step, Launch) for step in plan.steps)
    library = any(isinstance(step, Matmul) for step in plan.steps)
    if own == library:
        return None
    return 1.0 if own else 0.0


def idle_launches(plan: Plan, expected: Expected, task: Task, limits: Limits) -> list[str]:
    """One note for each launch that can be left out while the outputs stay right. Reported, not a fault."""
    launches = [index for index, step in enumerate(plan.steps) if isinstance(step, Launch)]
    if len(launches) > MAX_KNOCK_OUTS:
        return [f"knock-out left out: {len(launches)} launches, at most {MAX_KNOCK_OUTS} are tried"]
    notes = []
    for index in launches:
        step = plan.steps[index]
        if isinstance(step, Launch) and _right_without(plan, index, expected, task, limits):
            notes.append(f"idle launch: without {step.kernel} of line {step.line} the outputs are the same")
    return notes


def _right_without(plan: Plan, index: int, expected: Expected, task: Task, limits: Limits) -> bool:
    reduced = dataclasses.replace(plan, steps=plan.steps[:index] + plan.steps[index + 1 :])
    try:
        with cpu.Session(cpu.compile(reduced, limits), limits) as session:
            report = session.run(list(expected.inputs), order="forward", seed=0, guard="right")
    except ProgramFault:
        return False
    outputs = [np.asarray(x) for x in report.outputs]
    return not any(report.unwritten) and right(outputs, expected, task)
