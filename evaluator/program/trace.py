"""Runs a program's `forward` on symbolic arrays in a confined process and returns the plan.

    with Tracer() as tracer:
        plan = tracer.trace(text, arrays, outputs, limits)

The interpreter's start is most of a trace's time, so a Tracer keeps one confined child ready for the next program.
"""

import math
from collections.abc import Sequence
from typing import Any

from evaluator.program import compile_options, cuda_screen, nvrtc_rules
from evaluator.program.plan import Plan
from evaluator.program.plan_reader import from_record, load_hostile
from evaluator.program.tracer_process import TracerProcess
from evaluator.records import Limits, Outcome, ProgramFault, Rung
from evaluator.tasks.task import Array

MAX_POSITIONAL_PARAMETERS = 12
MEMORY_BYTES = 512 << 20
Output = tuple[Sequence[int], str]  # shape, dtype

# What the child may say of a program. Anything else it sends is a trace_error.
_RUNGS = {
    Outcome.TRACE_ERROR: Rung.TRACE,
    Outcome.REFUSED: Rung.TRACE,
    Outcome.OUT_OF_MEMORY: Rung.TRACE,
    Outcome.LAUNCH_ERROR: Rung.LAUNCH,
}


class Tracer:
    """Traces programs one after another. A context manager: it owns the child that waits for the next one."""

    def __init__(self, limits: Limits | None = None, keep_spare: bool = True):
        self._limits = Limits() if limits is None else limits
        self._keep_spare = keep_spare
        self._spare: TracerProcess | None = self._start()

    def __enter__(self) -> "Tracer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def trace(
        self, text: str, arrays: Sequence[Array], outputs: Sequence[Output] | None, parameters: Sequence[Array] = ()
    ) -> Plan:
        """The plan of `text`, a program that has passed the screen.

        `arrays` are the arguments of `forward` in order. A task may give its parameters apart: more than 12 of them
        arrive as one dict by their original names. `outputs` are shapes and dtypes that forward must return; None: any.
        Raises ProgramFault (trace_error, refused, wrong_shape, launch_error, compile_error, out_of_memory, timeout),
        and RuntimeError where the sandbox itself cannot start.
        """
        with self._take() as child:
            reply = child.ask(_request(text, arrays, parameters, self._limits), self._limits.trace_s)
        if self._keep_spare:
            self._spare = self._start()
        plan, c_names = _read_reply(reply, text, self._limits)
        _check_inputs(plan, [*arrays, *parameters])
        _check_sources(plan, c_names, text)
        _check_memory(plan, self._limits)
        if outputs is not None:
            check_outputs(plan, outputs, text)
        return plan

    def _take(self) -> TracerProcess:
        """The waiting child, or a new one where it died meanwhile."""
        child, self._spare = self._spare, None
        if child is not None and child.alive():
            return child
        if child is not None:
            child.close()
        return self._start()

    def _start(self) -> TracerProcess:
        cpu_s = math.ceil(self._limits.trace_s) + 1
        return TracerProcess(cpu_s=cpu_s, memory_bytes=MEMORY_BYTES, layers=self._limits.confinement)


def trace(
    text: str,
    arrays: Sequence[Array],
    outputs: Sequence[Output] | None,
    limits: Limits | None = None,
    parameters: Sequence[Array] = (),
) -> Plan:
    """One trace with a child of its own; see `Tracer.trace`."""
    with Tracer(limits, keep_spare=False) as tracer:
        return tracer.trace(text, arrays, outputs, parameters)


def _request(text: str, arrays: Sequence[Array], parameters: Sequence[Array], limits: Limits) -> dict[str, Any]:
    return {
        "text": text,
        "arrays": [(array.argument, tuple(array.shape), array.dtype) for array in [*arrays, *parameters]],
        "dict_keys": [array.name for array in parameters] if len(parameters) > MAX_POSITIONAL_PARAMETERS else [],
        "max_steps": limits.plan_steps,
        "max_bytes": limits.memory_bytes,
    }


def _read_reply(reply: bytes, text: str, limits: Limits) -> tuple[Plan, list[list[str]]]:
    """The plan in the child's reply, which generated code may have forged."""
    try:
        record = load_hostile(reply)
        if "fault" in record:
            raise _fault(record["fault"], text)
        plan = from_record(record["plan"], max_steps=limits.plan_steps)
        c_names = [[str(name) for name in names] for names in record["c_names"]]
        if len(c_names) != len(plan.modules):
            raise ValueError(f"{len(c_names)} lists of names for {len(plan.modules)} modules")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProgramFault(Outcome.TRACE_ERROR, Rung.TRACE, f"the trace gave no valid plan: {error}") from None
    return plan, c_names


def _fault(record: Any, text: str) -> ProgramFault:
    outcome, message, line = record["outcome"], record["message"], record["line"]
    if outcome not in set(_RUNGS) or not isinstance(message, str) or type(line) is not int:
        raise ValueError("an unknown kind of fault")
    shown = "".join(c if c.isprintable() else " " for c in message[:1000])
    known_line = line if 1 <= line <= text.count("\n") + 1 else None
    return ProgramFault(Outcome(outcome), _RUNGS[Outcome(outcome)], shown, known_line)


def _check_inputs(plan: Plan, arrays: Sequence[Array]) -> None:
    """An honest child repeats what it was given; a forged plan may claim other inputs."""
    expected = [(array.argument, tuple(array.shape), array.dtype) for array in arrays]
    if [(buffer.name, buffer.shape, buffer.dtype) for buffer in plan.inputs] != expected:
        message = "the trace gave no valid plan: its inputs are not those of the task"
        raise ProgramFault(Outcome.TRACE_ERROR, Rung.TRACE, message)


def _check_sources(plan: Plan, c_names: list[list[str]], text: str) -> None:
    """Screens the CUDA text as the program assembled it: strings may have been joined after the AST check."""
    for module, names in zip(plan.modules, c_names, strict=True):
        cuda_screen.check(module.source, program=text)
        compile_options.check(module.options, program=text)
        for name in module.kernels:
            cuda_screen.check(name, program=text)  # name expressions are compiled, too
        nvrtc_rules.check(module.source, program=text)
        cuda_screen.check_c_names(module.source, names, program=text)


def _check_memory(plan: Plan, limits: Limits) -> None:
    if plan.nbytes > limits.memory_bytes:
        message = f"the plan's arrays need {plan.nbytes} bytes together; at most {limits.memory_bytes}"
        raise ProgramFault(Outcome.OUT_OF_MEMORY, Rung.TRACE, message)


def check_outputs(plan: Plan, outputs: Sequence[Output], text: str) -> None:
    """Raises ProgramFault `wrong_shape` where forward's result differs from the task's outputs."""
    seen = [(view.shape, plan.dtype(view)) for view in plan.outputs]
    expected = [(tuple(shape), dtype) for shape, dtype in outputs]
    if seen != expected:
        message = f"forward returned {_describe(seen)}, expected {_describe(expected)}"
        raise ProgramFault(Outcome.WRONG_SHAPE, Rung.TRACE, message, _forward_line(text))


def _describe(arrays: Sequence[Output]) -> str:
    shown = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in arrays[:8])
    return f"{len(arrays)} arrays ({shown})" if len(arrays) != 1 else shown


def _forward_line(text: str) -> int | None:
    lines = [number for number, line in enumerate(text.split("\n"), start=1) if line.startswith("def forward")]
    return lines[0] if lines else None
